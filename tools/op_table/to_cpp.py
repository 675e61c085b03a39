"""The audited operators of a table as the initialiser that pytorch_plugin/op_writes.cc includes: TABLE OUTPUT."""
import pathlib
import sys

import table


def line_of(row) -> str:
    def names(items):
        return "".join(name + "," for name in sorted(items))

    return f'    {{"{row.op}", "{names(table.written_arguments(row))}", "{names(table.hooked_arguments(row))}"}},'


def main() -> None:
    rows = table.read(pathlib.Path(sys.argv[1]))
    lines = [line_of(row) for _, row in sorted(rows.items()) if table.is_audited(row)]
    pathlib.Path(sys.argv[2]).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
