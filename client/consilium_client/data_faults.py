"""Messages of `errors.DataError` and its classes, but for images. None has a value of a cell."""

from __future__ import annotations

from typing import Final

FILES: Final = {
    "DataFileMalformed": "{path}, line {line}: {why}; save the table as comma-separated UTF-8 with one header line",
    "FileKindWrong": "{path}: this is {kind}, not text; open or unpack it, and save it as CSV (UTF-8) or Parquet",
    "EncodingWrong": "{path}, line {line}: the text is not {encoding}{found}; save it as UTF-8. For a table from an"
    " older Windows program, a mapping can name the encoding (under [file])",
    "NullByte": "{path}, line {line}: the text contains a NUL byte. The file is damaged or is not text; export it"
    " again",
    "LineTooLong": "{path}, line {line}: a {what} has more than {at_most} characters; check that the file is a table."
    " Remove images and files from cells, and shorten texts",
    "QuoteNotClosed": "{path}, line {line}: the row that begins here opens a quotation mark and does not close it;"
    ' close it. Write a quotation mark that belongs to a text twice ("")',
    "DelimiterWrong": "{path}, line 1: the columns seem to be separated by {found!r}, not by {expected!r}; write"
    " delimiter = {toml} under [file] of a mapping, or save the table with {expected!r} between columns",
    "HeaderMissing": "{path}, line {line}: the first line has none of the expected column names; add a header line with"
    " the columns' names, or name the file's columns under [columns] of a mapping. If the file has no header line,"
    " write header = false under [file], and give the columns' positions",
    "LineWidthWrong": "{path}, line {line}: this line has {found} fields, but the first line has {expected}; put"
    " quotation marks around cells that contain the delimiter, and remove titles and totals around the table",
}

DATA: Final = {
    "MappingInvalid": "{why}",
    "DataFileMissing": "cannot read {path}: {why}; pass the path of data that this user may read",
    "ParquetUnreadable": "{path}: this Parquet file cannot be read: {why}; export it again without encryption, or"
    " save it as CSV (UTF-8)",
    "DataFileEmpty": "{path} contains no rows; write a header line and at least one row, or put files into the folder",
    "ColumnsWrong": "{path}: the columns are not the expected ones ({faults}); add, remove or rename these columns,"
    " or name the file's columns in a mapping",
    "ColumnTypeWrong": "{path}, column {column}: its type is {kind}; export it as whole numbers, floating-point"
    " numbers, booleans or text",
    "ColumnAllMissing": "{path}, column {column}{called}: no row has a value that the task knows; check the"
    " mapping's codes and missing. If this hospital does not record the value, write"
    " {column} = {{ absent = true }} under [columns]",
    "ColumnOutOfRange": "{path}, column {column}{called}: more than a fifth of its values {what}; check that this"
    " is the right column, its unit (scale and offset in the mapping), and its codes",
    "RemarksUnanswered": "{path}: {remarks}; correct the data or the mapping. If they are right, answer under"
    " [data_accepted] in node.toml: {answers}",
    "ArraysWrong": "{path}: {why}; pass a folder of images, or a NumPy archive (.npz) of two arrays: images,"
    " uint8, (n, height, width) or (n, height, width, channels), and labels, whole numbers (n,). With bits = 16 or"
    " a window, images may be uint16",
    "SeriesTooLarge": "{path}: {stays:,} stays of {values:,} values each do not fit into memory; draw a sample, or join"
    " as several hospitals",
    "OneClassOnly": "{path}: every row has the same {label}; held-out data needs several. Add rows with other answers",
    "TooFewRows": "{rows} rows are too few: at least {at_least} are needed; add rows, or do not join this task",
    "TooFewHeldOut": "{path}: {found:,} {what} are too few: this task asks a voter to hold out {at_least:,}; add"
    " rows, or do not judge this task",
    "TooManyRows": "the data has {rows} rows or more, but one hospital may bring at most {at_most}; draw a sample,"
    " or join as several hospitals",
}

QUERIES: Final = {
    "QueryWrong": "{path}: the query{at} is wrong: {why}; correct sql under [query] of the mapping",
    "QueryNotAllowed": "{path}: the query{at} is not one SELECT over tables of these data alone; leave out statements"
    " that write or set, functions that read files, and tables that it may not read",
    "QueryBeyondLimit": "{path}: the query needs more than {limit}; read fewer rows, or raise {setting} under [query]"
    " of the mapping",
    "QueryValueWrong": "{path}: the query{at} computes with a value of another form ({kind}); convert values by"
    " TRY_CAST, or where they have the form",
    "QueryEmpty": "{path}: the query gives no rows; check its joins and conditions",
    "QueryFileMalformed": "{file}{at}: DuckDB cannot read this file ({kind}); export it again, CSV and NDJSON as UTF-8."
    " For another delimiter or decimal mark, write delimiter or decimal under [query] of the mapping",
    "QueryFailed": "{path}: the query{at} failed ({kind}); run it in the database's own program, which says more",
    "ServerAddressWrong": "{path}: {why}; write one line such as postgresql://reader@host/database into a file that its"
    " owner alone may read (chmod 600)",
    "ServerUnreachable": "{path}: the database server does not let this node in ({kind}); check that it runs, and"
    " the address, user and password. The server's own program, such as psql, says more",
}

CELLS: Final = {
    "ValueNotNumeric": "the cell is not a number; write a number with a decimal point, or leave the cell empty"
    " if the value is missing. If the column has codes, or texts that mean missing, list them in a mapping",
    "ValueIsDate": "the cell is a date or a time, not a number; check that this is the right column, and export"
    " the value that the task asks for (for example, an age in years). For dates as times of a series, write [clock]"
    " into a mapping",
    "ThousandsSeparator": "the cell is not a number: its digits seem to be in groups; export numbers without"
    " thousands separators. If the mark is the decimal mark, write decimal under [file] of a mapping",
    "DecimalMarkWrong": "the cell is not a number: it has another decimal mark than expected; use one mark in"
    ' all cells. For commas, write decimal = "," under [file] of a mapping; for points, leave it out',
    "ValueNotFinite": "the cell is not a finite number; leave the cell empty (or write ?) if the value is missing",
    "CodeUnknown": "the cell is neither a value of the task's nor a code of the mapping's for this column; add"
    " it to the column's codes. If it means that the value is missing, add it to the column's missing",
    "DateMalformed": "a date has another form than expected; correct it, or the mapping's format",
    "AgeImpossible": "the dates give an age below 0 or above 130; correct them, or the mapping's born and on",
    "PatientMissing": "the row has no patient; fill in its column, or remove patient from the mapping",
    "StayMissing": "the row names no stay; fill in its column, or leave the row out",
    "StayTwice": "this stay is listed more than once; keep one row for each stay",
    "TimeMissing": "the measurement has no time; fill it in, or leave the row out",
    "TimeSkipped": "the zone's clock never showed this time, as summer time began; check zone under [clock] of the"
    " mapping, or correct the time",
    "ZoneMissing": "the time has no zone; write the zone of the hospital's clock under [clock] of the mapping, such as"
    ' zone = "Europe/Berlin", or zone = "UTC" for shifted dates',
    "ZoneTwice": "the time has an offset of its own, beside the mapping's zone; give all times with an offset and leave"
    " zone out, or none",
    "LabelOutOfSchema": "the label is not one of the task's classes (0, 1, …); write a class's number or, in"
    " a table, its name, or add codes for the labels to a mapping. Remove rows without a label",
    "AnswerMissing": "the cell has no answer to the task's question; leave rows without one out of the file",
    "AnswerNotYesOrNo": "the cell must be 1 for yes or 0 for no; write these, or add codes to a mapping",
    "TimeNegative": "the time is below 0; check the dates that it was computed from, or leave the row out",
    "LabelUnknown": "the label is not the name of one of the task's classes; write the task's name for the"
    " class, or add codes for the labels to a mapping. Remove rows without a label",
}

FOLDERS: Final = {
    "ClassFolderUnknown": "the folder's name is not one of the task's classes; make one folder for each class,"
    " with the class's name and its examples, or list the files in a labels.csv",
    "FileUnexpected": "this file is not an example of the task's kind; put texts (.txt) or images (.png, .jpg,"
    " .jpeg, .bmp, .tif, .tiff, .dcm, or DICOM without an ending), as the task needs, into a folder for each"
    " class, or beside a labels.csv. Remove all other files",
    "NamesAlike": "another name in this folder looks the same; rename one of the two",
    "ListedFileMissing": "this file is listed but does not exist; add the file, or correct or remove its line."
    " Names are relative to the folder of labels.csv, with /",
    "ListedTwice": "this file is listed more than once; keep only the correct line",
    "LeadsOutside": "this path leads out of the folder, and only files inside are read; copy the file into the folder",
}
