"""What all models of the workflow language have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from deepgrid.workflow.fields import EMPTY_LIST, EnvName, Text


class NotKnown(Exception):
    """A field was looked at that is missing or not well-formed (see `partial`)."""


class Model(BaseModel):
    """Base of the language: no unknown fields, no change after loading, no input echoed in errors.

    YAML names are camelCase, attributes are snake_case. Values that may be secret stay out of every
    `repr`. `OUTDATED` maps the YAML name of a field that still works to what to write instead.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )
    OUTDATED: ClassVar[dict[str, str]] = {}

    if not TYPE_CHECKING:  # else mypy would let every misspelt attribute pass

        def __getattr__(self, name: str) -> Any:
            if name in type(self).model_fields:
                raise NotKnown(name)
            return super().__getattr__(name)


class EnvVar(Model):
    """One environment variable."""

    key: EnvName
    """Its name; not PATH, LD_LIBRARY_PATH, nor a variable of the shell itself."""
    value: Text = Field(repr=False)
    """Any text, also empty or of several lines; may be a secret."""


Env = Annotated[tuple[EnvVar, ...], EMPTY_LIST]


def field_of(model: type[BaseModel], yaml_name: str) -> Any:
    """The pydantic field that the YAML name stands for, or None."""
    return next((f for f in model.model_fields.values() if f.alias == yaml_name), None)


def yaml_names(model: type[BaseModel]) -> list[str]:
    """The names that YAML may use in this model."""
    return [field.alias or name for name, field in model.model_fields.items()]


def model_in(annotation: Any) -> type[Model] | None:
    """The one model inside `Model | None`, `tuple[Model, ...]` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    return next((found for inner in get_args(annotation) if (found := model_in(inner))), None)
