"""Run `python -m deep.experiments.finetune`."""

from deep.experiments.finetune._command import main

if __name__ == "__main__":
    raise SystemExit(main())
