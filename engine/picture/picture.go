// Package picture turns files that users upload into pictures that can be shown to others. Such a
// picture has a limited size, and its file contains nothing except the picture.
package picture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // each of these imports lets image.Decode read a format
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"

	"github.com/lightweb/lightweb/engine/fault"
)

// Bounds of an uploaded file.
const (
	MaxBytes = 2 << 20 // also the limit of the resulting picture
	maxSide  = 4096    // pixels
	maxScans = 100     // in a JPEG; for each scan, decoding passes over the whole picture
)

// Longest sides of the resulting pictures, in pixels.
const (
	IconSide  = 1024
	ImageSide = 2048
)

const quality = 90 // the quality of a JPEG, from 1 to 100

// mediaTypes are the accepted media types, by the names of their formats in package image.
var mediaTypes = map[string]string{"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}

// IsTaken reports whether files of the type mediaType are accepted.
func IsTaken(mediaType string) bool {
	for _, t := range mediaTypes {
		if t == mediaType {
			return true
		}
	}
	return false
}

// Picture is a file that can be shown.
type Picture struct {
	Data      []byte
	Extension string // png or jpg
}

// Maker makes pictures, one at a time, because reading one may take 350 MiB of memory.
type Maker struct{ turn chan struct{} }

// NewMaker returns a maker.
func NewMaker() *Maker { return &Maker{make(chan struct{}, 1)} }

// Make reads an uploaded file, which must have the type mediaType, and makes a picture from it.
// The picture is upright, and shrunk if needed so that no side has more pixels than the parameter
// side. If the file contains several pictures, Make takes the first one. It leaves out metadata.
// The fault is Unsupported if the file has another type, TooLarge if it has too many bytes or
// pixels, Unprocessable if it is damaged or has too many scans, and Busy if ctx ends first.
func (m *Maker) Make(ctx context.Context, data []byte, mediaType string, side int) (Picture, error) {
	if len(data) > MaxBytes {
		return Picture{}, fault.New(fault.TooLarge, "a picture has at most 2 MiB").WithCode("picture_too_large")
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	switch {
	case errors.Is(err, image.ErrFormat) || err == nil && mediaTypes[format] != mediaType:
		return Picture{}, fault.New(fault.Unsupported, fmt.Sprintf("the file is not of the type %.40s", mediaType)).WithCode("unsupported_picture")
	case err != nil:
		return Picture{}, refuseDamaged(err)
	case config.Width > maxSide || config.Height > maxSide:
		return Picture{}, fault.New(fault.TooLarge, "a picture has at most 4,096 pixels a side").WithCode("picture_too_large")
	case config.Width < 1 || config.Height < 1:
		return Picture{}, refuseDamaged(errors.New("it has no pixels"))
	case format == "jpeg" && bytes.Count(data, []byte{0xFF, startOfScan}) > maxScans:
		return Picture{}, refuseDamaged(errors.New("it has too many scans"))
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return Picture{}, fault.Wrap(fault.Busy, "other pictures are being read: try again", ctx.Err())
	}
	return redraw(data, side)
}

func refuseDamaged(err error) error {
	return fault.Wrap(fault.Unprocessable, "the picture is damaged", err).WithCode("damaged_picture")
}

// redraw decodes a picture whose size Make has checked, and encodes it again in at most MaxBytes.
func redraw(data []byte, side int) (Picture, error) {
	from, format, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return Picture{}, refuseDamaged(err)
	}
	o := orientationOf(data)
	asPNG := format == "png" || format == "gif" || !isOpaque(from)
	for {
		p, err := encodePicture(turnUpright(shrink(from, side), o), asPNG)
		switch {
		case err != nil || len(p.Data) <= MaxBytes:
			return p, err
		case asPNG && isOpaque(from): // probably a photograph, which is smaller as a JPEG
			asPNG = false
		default:
			side /= 2
		}
	}
}

func encodePicture(i image.Image, asPNG bool) (Picture, error) {
	var out bytes.Buffer
	if asPNG {
		err := png.Encode(&out, i)
		return Picture{out.Bytes(), "png"}, err
	}
	err := jpeg.Encode(&out, i, &jpeg.Options{Quality: quality})
	return Picture{out.Bytes(), "jpg"}, err
}

// shrink returns a copy of the picture from, scaled down if needed, so that neither its width nor
// its height exceeds the parameter side. The bounds of the copy begin at 0, 0.
func shrink(from image.Image, side int) image.Image {
	b := from.Bounds()
	w, h := b.Dx(), b.Dy()
	if longest := max(w, h); longest > side {
		w, h = max(1, w*side/longest), max(1, h*side/longest)
	}
	to := image.NewRGBA(image.Rect(0, 0, w, h))
	if w == b.Dx() && h == b.Dy() {
		draw.Copy(to, image.Point{}, from, b, draw.Src, nil)
	} else {
		draw.BiLinear.Scale(to, to.Bounds(), from, b, draw.Src, nil)
	}
	return to
}

func isOpaque(i image.Image) bool {
	o, can := i.(interface{ Opaque() bool })
	return can && o.Opaque()
}
