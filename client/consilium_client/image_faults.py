"""Messages of `errors.ExampleError` about images. None has a value of a header or a pixel."""

from __future__ import annotations

from typing import Final

IMAGE_FAULTS: Final = {
    "ImageEmpty": "the file is empty; copy or export it again",
    "ImageKindWrong": "the file is not a PNG, JPEG, BMP, TIFF, DICOM or NIfTI image, even if its name says so; export"
    " it as PNG",
    "ImageUnreadable": "the image is damaged or cut off; copy or export it again",
    "ImageTooLarge": "the image has more than 67,108,864 pixels; export a part of it, or scale it down",
    "ImageInParts": "the file contains several images (pages, frames of an animation, or slices of a volume); export"
    " the one that you need as a PNG. Only a segmentation reads volumes",
    "ImageTooDeep": "the image has more bits per channel than the task reads; export it with 8 bits per"
    " channel, in the display window that a reader would use. Only a task with bits = 16 or a window reads 16"
    " bits of grey",
    "ImageTooShallow": "the image has 8 bits per channel, but the task's window is in units of the original;"
    " give the DICOM file, or export 16 bits",
    "ImageNotGrey": "the image is in colour, but the task reads grey (it has a window or 16 bits); export it as grey",
    "ImageColoursWrong": "the image's colours are neither grey nor RGB (nor a palette of these); export it as"
    " grey or RGB",
    "ImageTransparent": "parts of the image are transparent; export it without transparency",
    "DicomFieldWrong": "the DICOM field {field} is missing or has a value that is not read ({needed}); export"
    " the image again, and leave out files that are not images, such as DICOMDIR",
    "DicomHeaderTooLong": "the DICOM header is longer than {at_most} MiB; export the image without private fields",
    "DicomModalityWrong": "the DICOM field Modality is not {expected}, which the task asks for; leave the file out",
    "DicomCompressed": "the DICOM file is compressed in a way that is not read here ({syntax}); save it"
    " uncompressed (gdcmconv --raw, or dcmdjpeg, dcmdjpls and dcmdrle of DCMTK)",
    "DicomWindowMissing": "the values of the DICOM image are not 8 bits of shade, and the task has no window"
    " for them; ask the task's operator for a window, or export the image as PNG",
    "NiftiFieldWrong": "the NIfTI field {field} has a value that is not read ({needed}); export the volume again",
    "NiftiTooLarge": "the volume has more than {at_most:,} voxels, or more than a GiB of them; export a part of it, or"
    " a coarser one",
    "NiftiWindowMissing": "the values of the volume are not 8 bits of shade, and the task has no window for them; ask"
    " the task's operator for a window",
    "NiftiNotFinite": "the volume has values that are not finite numbers; write 0, or the value of air, instead",
    "ChannelMissing": "this file of a channel is missing; each case needs one file for each of the task's channels"
    " (CASE_0000, CASE_0001, …), beside the others",
    "ChannelsDiffer": "this file of a channel has another label than the first of its case; give all the same",
    "MaskMissing": "this image has no mask; add the file of the same case to labelsTr, or remove the image. Without"
    " _0000 its name is the mask's",
    "FilesApart": "the file does not cover the same region as another one of its case (size, spacing, position);"
    " resample it, or correct its header",
    "MaskValueUnknown": "the mask has a value that is not a class's number (0 to {last}); write these whole numbers, in"
    " a PNG as shades of grey",
}
