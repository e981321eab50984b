"""Build the package, install it in an empty environment, and use it there: with and without a network.

Run: python tools/check_package.py [FOLDER]. The distributions are written to FOLDER (default: dist).
"""

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from distribution import ROOT, build, environment, install, offline, run

UTTERANCE = "when is my next meeting with Elena?"
PROGRAM = "(when (next (meetings (with me Elena))))"
LICENCES = ("LICENSE", "licenses/README.md", "licenses/CC-BY-SA-4.0.txt")


def check_files(wheel: Path) -> None:
    """Check that the wheel has every file of the package and the licences, and nothing else."""
    tracked = run(["git", "ls-files", "src/fewparse"], cwd=ROOT).split()
    expected = {file.removeprefix("src/") for file in tracked if (ROOT / file).exists()}
    names = set(zipfile.ZipFile(wheel).namelist())
    metadata = {name for name in names if ".dist-info/" in name}
    require(names - metadata == expected, f"the wheel differs in {sorted((names - metadata) ^ expected)}")
    licences = {name.partition(".dist-info/licenses/")[2] for name in metadata}
    require(licences - {""} == set(LICENCES), f"the licence files of the wheel are {sorted(licences)}")


def check_use(commands: Path, folder: Path) -> None:
    """Check that the installed package parses and makes domains, also without a network once it has its model."""
    env = environment(commands)
    python, fewparse = str(commands / "python"), str(commands / "fewparse")
    run([python, "-m", "pip", "check"], env)
    parsed = json.loads(run([python, "-m", "fewparse", "parse", "calendar", UTTERANCE, "--json"], env, folder))
    require(parsed["program"] == PROGRAM, f"the program is {parsed['program']}")
    run([fewparse, "new", "home"], env, folder)
    run([fewparse, "check", "./home"], env, folder)
    alone = env | offline()
    parsed = json.loads(run([fewparse, "parse", "calendar", UTTERANCE, "--json"], alone, folder))
    require(parsed["program"] == PROGRAM, f"without a network, the program is {parsed['program']}")
    without = alone | {"FEWPARSE_CACHE": str(folder / "empty")}
    refused = subprocess.run(
        [fewparse, "parse", "calendar", UTTERANCE], env=without, cwd=folder, capture_output=True, text=True
    )
    print(refused.stderr, end="")
    require(refused.returncode == 1, f"without a model, the exit code is {refused.returncode}")
    require("Check the network" in refused.stderr, "without a model, the message does not say what to do")
    require("Traceback" not in refused.stderr, "without a model, there is a traceback")


def require(condition: bool, message: str) -> None:
    """Exit with a message unless a condition holds."""
    if not condition:
        sys.exit(f"error: {message}")


def main(folder: Path) -> None:
    """Run all checks."""
    with tempfile.TemporaryDirectory() as scratch:
        wheel = build(Path(scratch) / "dist")
        check_files(wheel)
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, with all files and licences")
        commands = install(Path(scratch) / "environment", str(wheel))
        working = Path(scratch) / "work"
        working.mkdir()
        check_use(commands, working)
        folder.mkdir(exist_ok=True)
        for distribution in wheel.parent.iterdir():
            (folder / distribution.name).write_bytes(distribution.read_bytes())
    print("the installed package works, also without a network")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist")
