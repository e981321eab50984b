"""Wait until a server responds: python deploy/wait_until_ready.py URL."""

import sys
import time
import urllib.error
import urllib.request

for _ in range(60):
    try:
        with urllib.request.urlopen(sys.argv[1], timeout=2):
            sys.exit()
    except (urllib.error.URLError, OSError):
        time.sleep(1)
sys.exit(f"{sys.argv[1]} does not respond")
