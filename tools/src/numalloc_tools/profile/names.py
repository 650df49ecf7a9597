"""Names for the functions of a profile."""

from collections import defaultdict

from numalloc_tools import symbols
from numalloc_tools.profile.proto import Profile


def add_names(profile: Profile) -> list[str]:
    """Gives every location its functions, if its file still exists and has names. Returns the files that have changed since:
    their contents do not describe the program that ran."""
    texts = {text: number for number, text in enumerate(profile.string_table)}
    functions: dict[tuple[str, str], int] = {}
    mappings = {mapping.id: mapping for mapping in profile.mapping}
    wanted = defaultdict(list)  # by file, for all processes together: locations with their offsets in it
    for location in profile.location:
        if not location.line and (mapping := mappings.get(location.mapping_id)):
            file = profile.string_table[mapping.filename], profile.string_table[mapping.build_id]
            wanted[file].append((location, location.address - mapping.memory_start + mapping.file_offset, mapping))

    def text(value: str) -> int:
        if value not in texts:
            texts[value] = len(profile.string_table)
            profile.string_table.append(value)
        return texts[value]

    def function(name: symbols.Name) -> int:
        key = name.function, name.file
        if key not in functions:
            functions[key] = max((f.id for f in profile.function[-1:]), default=0) + 1
            profile.function.add(id=functions[key], name=text(name.function), system_name=text(name.function), filename=text(name.file))
        return functions[key]

    profile.function.sort(key=lambda f: f.id)
    functions.update({(profile.string_table[f.name], profile.string_table[f.filename]): f.id for f in profile.function})
    changed = []
    for (path, build_id), places in wanted.items():
        try:
            names = symbols.names_in(path, [offset for _, offset, _ in places], build_id)
        except symbols.AnotherFile:
            changed.append(path)
            continue
        for location, offset, mapping in places:
            for name in names.get(offset, []):
                location.line.add(function_id=function(name), line=name.line)
            mapping.has_functions = mapping.has_functions or bool(names)
    return sorted(changed)
