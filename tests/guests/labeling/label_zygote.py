"""A process that has loaded deep, and becomes `deep label` for each line that it is given: {"cwd", "out", "words"}."""

import json
import os
import signal
import sys
import threading


def become(asked):
    """Run the command in this process, a child, and end with its status."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(asked["cwd"])
    file = os.open(asked["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(file, number)
    from deep.cli import main

    status = main(asked["words"], command="label")
    sys.stdout.flush()
    os._exit(status)


def load(asked):
    """Load what the command needs, by a page that nobody opens."""
    from deep import cli
    from deep.integrations.labeling import _command, label_app, open_label_desk, read_label_subject
    from deep.integrations.serve import serving

    subject = read_label_subject([asked["votes"]], examples=asked["examples"])
    with open_label_desk(subject, asked["out"], n=3) as desk, serving(label_app(desk)):
        desk.state("Ann")
        desk.enough()
    assert cli.main
    assert _command.run
    assert threading.active_count() == 1


if __name__ == "__main__":
    load(json.loads(sys.stdin.readline()))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            sys.stdin.close()
            become(json.loads(line))
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
