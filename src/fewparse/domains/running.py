"""The functions of a domain, its executor and its normal form: loaded on demand, and run if that is allowed."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fewparse.domains.constraints import ConstraintKind
from fewparse.domains.files import DomainFiles
from fewparse.domains.functions import Function, database_executor, load_function
from fewparse.domains.schema import DomainTable
from fewparse.domains.trust import not_trusted
from fewparse.domains.values import NOTHING_GIVEN, Given
from fewparse.errors import ExecutionError, InvalidProgram, UsageError


@dataclass(frozen=True)
class DomainFunctions(DomainFiles):
    """The functions of a domain.

    `table` has the settings, `given` what a domain that is made in Python has instead of files. `allow_code` is
    whether the functions that domain.toml names may run; `installed` is whether the folder is part of an installed
    package.
    """

    table: DomainTable
    given: Given = NOTHING_GIVEN
    allow_code: bool = True
    installed: bool = False

    @property
    @abstractmethod
    def constraint_kind(self) -> ConstraintKind:
        """The kind of constraint that domain.toml names."""

    @cached_property
    def executor(self) -> Function | None:
        """The function that executes programs, loaded on first use; raises `UsageError` if code may not run."""
        if self.table.database is None:
            return self.given.executor or self._function("executor", self.table.executor)
        if not self.allow_code:
            raise UsageError(*self.not_trusted("executor"))
        return database_executor(self.table.database, self.data)

    @cached_property
    def normal_form(self) -> Function | None:
        """The function that normalises programs for comparison, loaded like the executor."""
        own = self.given.normal_form or self._function("normal_form", self.table.normal_form)
        return own or self.constraint_kind.normal_form

    def _function(self, key: str, name: str | None) -> Function | None:
        if name is None:
            return None
        if not self.allow_code:
            raise UsageError(*self.not_trusted(key))
        return load_function(self.folder, key, name, self.installed)

    def not_trusted(self, key: str) -> tuple[str, str]:
        """Return why a function is not run, or a database is not opened, and what to do."""
        is_database = key == "executor" and self.table.database is not None
        return not_trusted(self.folder, "database" if is_database else key)

    def require_code(self) -> None:
        """Raise `UsageError` if domain.toml names functions that are used without a request and may not run."""
        for key, used in (("executor", self.executes), ("normal_form", self.table.normal_form is not None)):
            if used and not self.allow_code:
                raise UsageError(*self.not_trusted(key))

    @property
    def has_executor(self) -> bool:
        """Whether programs can be executed: by a function, or on a database."""
        return self.given.executor is not None or self.table.has_executor

    @property
    def executes(self) -> bool:
        """Whether programs are executed without a request: there is an executor, and `execute` is `always`."""
        return self.has_executor and self.table.execute == "always"

    def execute(self, program: str) -> Any:
        """Return the denotation of a program, a JSON value; raise `ExecutionError` if it has none."""
        if not self.has_executor:
            raise ExecutionError(f"the domain {self.name} has no executor")
        if not self.allow_code:
            raise ExecutionError(*self.not_trusted("executor"))
        assert self.executor is not None
        try:
            self.constraint_kind.check_executable(program)
        except InvalidProgram as error:
            raise ExecutionError(f"the program {error.message}", error.hint) from None
        return self.executor(program)
