"""Check a domain that is being written, in a child process with limits on memory and time.

Run as a module, it is that child: it reads a request from standard input and writes a response.
"""

import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from fewparse.constrain.isolation import limit_resources
from fewparse.domains.check import check_domain
from fewparse.domains.domain import Domain
from fewparse.domains.load import load_domain
from fewparse.errors import FewparseError
from fewparse.grammar.analysis.sampling import sample_pairs, sample_sentences
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.serve.requests import ScratchRequest
from fewparse.serve.responses import Finding, ScratchResponse, Sentence
from fewparse.serve.service import Service
from fewparse.text import to_json

SECONDS = 10.0
DEPTH = 10


async def check_scratch(service: Service, request: ScratchRequest, client: str) -> ScratchResponse:
    """Return the findings of a grammar and its examples, and random sentences."""
    return await service.on_grammar(client, lambda cancel: check_in_child(request, cancel), request.grammar)


def check_in_child(request: ScratchRequest, cancel: threading.Event, seconds: float = SECONDS) -> ScratchResponse:
    """Run the check in a child process, which is ended when it takes too long or the request is cancelled."""
    command = [sys.executable, "-m", "fewparse.serve.scratch"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as child:
        ended = threading.Event()
        watcher = threading.Thread(target=end_child, args=(child, cancel, ended, seconds), daemon=True)
        watcher.start()
        try:
            output, _ = child.communicate(request.model_dump_json().encode())
        finally:
            ended.set()
            watcher.join()
    if child.returncode == 0:
        return ScratchResponse.model_validate_json(output)
    message = f"the check did not end within {seconds:g} seconds, or needs too much memory"
    return ScratchResponse(passed=False, findings=[error_finding("limit", message)], sentences=[])


def end_child(
    child: "subprocess.Popen[bytes]", cancel: threading.Event, ended: threading.Event, seconds: float
) -> None:
    """End a process when its time is over or the flag is set, unless it has ended."""
    waited = 0.0
    while not ended.wait(0.1):
        waited += 0.1
        if waited >= seconds or cancel.is_set():
            child.kill()
            return


def error_finding(kind: str, message: str) -> Finding:
    """Return an error as a finding."""
    return Finding(level="error", kind=kind, message=message, location=None)


def check_here(request: ScratchRequest) -> ScratchResponse:
    """Check a grammar and its examples in this process."""
    with tempfile.TemporaryDirectory(prefix="fewparse-scratch-") as name:
        folder = Path(name)
        try:
            write_folder(request, folder)
            domain = load_domain(folder, allow_code=False)
            domain.check()
            report = check_domain(domain)
            findings = [Finding.model_validate(finding, from_attributes=True) for finding in report.findings]
            return ScratchResponse(passed=report.passed, findings=findings, sentences=sentences(domain, request))
        except FewparseError as error:
            message = str(error).replace(f"{folder}/", "")
            return ScratchResponse(passed=False, findings=[error_finding("unusable", message)], sentences=[])


def write_folder(request: ScratchRequest, folder: Path) -> None:
    """Write the files of a domain folder."""
    synchronous = request.dialect == "scfg"
    settings = [
        'name = "scratch"',
        f'target = "{"canonical" if synchronous else "program"}"',
        "[constraint]",
        'kind = "grammar"',
        f'grammar = "grammar.{request.dialect}"',
        f"copy = {json.dumps(request.copied)}",
    ]
    rows = [example.model_dump_json(exclude_none=True) for example in request.examples]
    (folder / "domain.toml").write_text("\n".join(settings), encoding="utf-8")
    (folder / f"grammar.{request.dialect}").write_text(request.grammar, encoding="utf-8")
    (folder / "examples.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def sentences(domain: Domain, request: ScratchRequest) -> list[Sentence]:
    """Return random sentences of the grammar."""
    language = domain.language
    if language is None or not request.sentences:
        return []
    if isinstance(language, SynchronousGrammar):
        pairs = sample_pairs(language, request.sentences, request.seed, DEPTH)
        return [Sentence(utterance=pair.utterance, program=pair.program) for pair in pairs]
    programs = sample_sentences(language, request.sentences, request.seed, DEPTH)
    return [Sentence(utterance=None, program=program) for program in programs]


def main() -> None:
    """Answer the request on standard input."""
    request = ScratchRequest.model_validate_json(sys.stdin.buffer.read())
    limit_resources(SECONDS)
    found: dict[str, Any] = check_here(request).model_dump()
    sys.stdout.write(to_json(found))


if __name__ == "__main__":
    main()
