"""A worker whose process ends whenever it gets something to do."""

import os

from fewparse.experiment.worker import Slice, SliceResult, Worker


class DyingWorker(Worker):
    def run(self, tasks: Slice) -> SliceResult:
        os._exit(1)
