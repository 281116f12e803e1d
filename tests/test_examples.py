"""The README's way from text to probability, with no key and no network: its own commands, in a shell."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_votes_then_loo_as_the_readme_says(tmp_path):
    """Asking the stand-in and holding a dataset out scores each item; asked again, nothing is sent."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```bash\n(.*?)```", readme, re.DOTALL)
    assert "deep votes" in script
    folder = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "OUT": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "loo" / "results.json").read_text(encoding="utf-8"))
    assert (results["test"], results["n_test"]) == ("weather", 24)
    assert len(results["voters"]) == 3
    assert results["recommended"]["balanced_accuracy"] > 0.6
    assert "0 asked" in done.stdout or "0 calls" in done.stdout
