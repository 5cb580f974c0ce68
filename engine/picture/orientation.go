package picture

import (
	"bytes"
	"encoding/binary"
	"image"
)

// A camera writes a picture as the sensor saw it, and adds an Orientation, which says how the
// camera was held (Exif 2.3 §4.6.4). A picture that is encoded again loses its Orientation, so the
// picture itself has to be turned.

const (
	asSeen      = 1      // upright; the default for a picture that states no Orientation
	orientation = 0x0112 // the tag of the Orientation in Exif
	app1        = 0xE1   // marks the segment of a JPEG that holds Exif
	startOfScan = 0xDA
)

// orientationOf returns the Orientation that a JPEG states, from 1 to 8, or asSeen if data is no
// JPEG or states none.
func orientationOf(data []byte) int {
	if !bytes.HasPrefix(data, []byte{0xFF, 0xD8}) {
		return asSeen
	}
	for at := data[2:]; len(at) >= 4 && at[0] == 0xFF && at[1] != startOfScan; {
		size := 2 + int(binary.BigEndian.Uint16(at[2:]))
		if size > len(at) {
			break
		}
		if exif, is := bytes.CutPrefix(at[4:max(4, size)], []byte("Exif\x00\x00")); is && at[1] == app1 {
			return readOrientation(exif)
		}
		at = at[size:]
	}
	return asSeen
}

// readOrientation returns the Orientation in the first directory of a TIFF, or asSeen if the
// directory has none.
func readOrientation(tiff []byte) int {
	if len(tiff) < 8 {
		return asSeen
	}
	var order binary.ByteOrder = binary.BigEndian
	if string(tiff[:2]) == "II" {
		order = binary.LittleEndian
	}
	at := uint64(order.Uint32(tiff[4:]))
	if at+2 > uint64(len(tiff)) {
		return asSeen
	}
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < 12 {
			break
		}
		if order.Uint16(entries) == orientation {
			if o := int(order.Uint16(entries[8:])); o >= 1 && o <= 8 {
				return o
			}
			break
		}
		entries = entries[12:]
	}
	return asSeen
}

// turnUpright returns a picture in upright form. It turns and mirrors the picture as its
// Orientation, the parameter o, demands.
func turnUpright(from image.Image, o int) image.Image {
	if o == asSeen {
		return from
	}
	w, h := from.Bounds().Dx(), from.Bounds().Dy()
	to := image.NewRGBA(image.Rect(0, 0, w, h))
	if o > 4 { // the sides change places
		to = image.NewRGBA(image.Rect(0, 0, h, w))
	}
	for y := range h {
		for x := range w {
			tx, ty := x, y
			switch o {
			case 2:
				tx = w - 1 - x
			case 3:
				tx, ty = w-1-x, h-1-y
			case 4:
				ty = h - 1 - y
			case 5:
				tx, ty = y, x
			case 6:
				tx, ty = h-1-y, x
			case 7:
				tx, ty = h-1-y, w-1-x
			case 8:
				tx, ty = y, w-1-x
			}
			to.Set(tx, ty, from.At(x, y))
		}
	}
	return to
}
