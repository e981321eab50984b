"""The folder of the released benchmark datasets: `$FEWPARSE_DATA`, or `shared/data` beside the project."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("FEWPARSE_DATA") or ROOT.parent / "shared" / "data")
GEOQUERY = DATA / "geoquery"
OVERNIGHT = DATA / "overnight"
SMCALFLOW = DATA / "smcalflow"
