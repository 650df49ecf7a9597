"""pprof's profile.proto (github.com/google/pprof), written as a table here, so that it needs no protobuf compiler."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_TYPES = {"int": _Field.TYPE_INT64, "unsigned": _Field.TYPE_UINT64, "bool": _Field.TYPE_BOOL, "string": _Field.TYPE_STRING}

# Each message: name, number and type of its fields; "*" means repeated. Texts are indices into the string table.
_MESSAGES = {
    "Profile": (
        "sample_type 1 *ValueType",
        "sample 2 *Sample",
        "mapping 3 *Mapping",
        "location 4 *Location",
        "function 5 *Function",
        "string_table 6 *string",
        "drop_frames 7 int",
        "keep_frames 8 int",
        "time_nanos 9 int",
        "duration_nanos 10 int",
        "period_type 11 ValueType",
        "period 12 int",
        "comment 13 *int",
        "default_sample_type 14 int",
    ),
    "ValueType": ("type 1 int", "unit 2 int"),
    "Sample": ("location_id 1 *unsigned", "value 2 *int", "label 3 *Label"),
    "Label": ("key 1 int", "str 2 int", "num 3 int", "num_unit 4 int"),
    "Mapping": (
        "id 1 unsigned",
        "memory_start 2 unsigned",
        "memory_limit 3 unsigned",
        "file_offset 4 unsigned",
        "filename 5 int",
        "build_id 6 int",
        "has_functions 7 bool",
        "has_filenames 8 bool",
        "has_line_numbers 9 bool",
        "has_inline_frames 10 bool",
    ),
    "Location": ("id 1 unsigned", "mapping_id 2 unsigned", "address 3 unsigned", "line 4 *Line", "is_folded 5 bool"),
    "Line": ("function_id 1 unsigned", "line 2 int", "column 3 int"),
    "Function": ("id 1 unsigned", "name 2 int", "system_name 3 int", "filename 4 int", "start_line 5 int"),
}
_PACKAGE = "perftools.profiles"


def _described() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="numalloc_tools/profile.proto", package=_PACKAGE, syntax="proto3")
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for text in fields:
            name, number, kind = text.split()
            label = _Field.LABEL_REPEATED if kind.startswith("*") else _Field.LABEL_OPTIONAL
            field = message.field.add(name=name, number=int(number), label=label)
            kind = kind.lstrip("*")
            if kind in _TYPES:
                field.type = _TYPES[kind]
            else:
                field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_described())
Profile = message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.Profile"))
