"""The audited operators of a table as the initialiser that pytorch_plugin/op_writes.cc includes: TABLE OUTPUT."""
import pathlib
import sys

import table


def line_of(row) -> str:
    def names(items):
        return "".join(name + "," for name in sorted(items))

    return f'    {{"{row.op}", "{names(table.written_arguments(row))}", "{names(table.hooked_arguments(row))}"}},'


def main() -> None:
    path = pathlib.Path(sys.argv[1])
    rows = table.read(path) if path.exists() else {}  # without a table nothing is audited
    lines = [line_of(row) for _, row in sorted(rows.items()) if table.is_audited(row)]
    pathlib.Path(sys.argv[2]).write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
