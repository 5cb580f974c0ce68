package picture

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

// halves returns a picture whose left half is red and whose right half is blue.
func halves(w, h int, alpha uint8) *image.NRGBA {
	i := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.NRGBA{255, 0, 0, alpha}
			if x >= w/2 {
				c = color.NRGBA{0, 0, 255, alpha}
			}
			i.SetNRGBA(x, y, c)
		}
	}
	return i
}

func noise(side int, alpha bool) *image.NRGBA {
	i, r := image.NewNRGBA(image.Rect(0, 0, side, side)), rand.New(rand.NewPCG(1, 2))
	for n := range i.Pix {
		i.Pix[n] = uint8(r.Uint32())
		if !alpha && n%4 == 3 {
			i.Pix[n] = 255
		}
	}
	return i
}

func encode(t *testing.T, format string, i image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&b, i)
	case "jpeg":
		err = jpeg.Encode(&b, i, nil)
	case "gif":
		err = gif.Encode(&b, i, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// webp returns a WebP picture of one pixel.
func webp(t *testing.T) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// claiming returns a PNG. Its header claims a picture of side by side pixels.
func claiming(t *testing.T, side uint32) []byte {
	t.Helper()
	b := encode(t, "png", halves(2, 2, 255))
	binary.BigEndian.PutUint32(b[16:], side)
	binary.BigEndian.PutUint32(b[20:], side)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}

// held returns a JPEG whose Exif part has the given orientation of the camera.
func held(t *testing.T, orientation byte) []byte {
	t.Helper()
	b := encode(t, "jpeg", halves(64, 32, 255))
	exif := "Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string([]byte{orientation}) + "\x00\x00\x00\x00\x00\x00SECRET PLACE"
	head := append([]byte{0xFF, 0xD8, 0xFF, app1}, binary.BigEndian.AppendUint16(nil, uint16(len(exif)+2))...)
	return append(append(head, exif...), b[2:]...)
}

func TestPicturesAreTakenAndWrittenAnew(t *testing.T) {
	t.Parallel()
	small := halves(40, 20, 255)
	for _, tt := range []struct {
		name, mediaType string
		data            []byte
		w, h            int
		extension       string
	}{
		{"a PNG", "image/png", encode(t, "png", small), 40, 20, "png"},
		{"a PNG that can be seen through", "image/png", encode(t, "png", halves(40, 20, 100)), 40, 20, "png"},
		{"a JPEG", "image/jpeg", encode(t, "jpeg", small), 40, 20, "jpg"},
		{"a GIF", "image/gif", encode(t, "gif", small), 40, 20, "png"},
		{"a WebP", "image/webp", webp(t), 1, 1, "png"},
		{"a large one", "image/png", encode(t, "png", halves(400, 200, 255)), 100, 50, "png"},
		{"a narrow one", "image/png", encode(t, "png", halves(3000, 1, 255)), 100, 1, "png"},
		{"one with the camera held upright", "image/jpeg", held(t, 6), 32, 64, "jpg"},
		{"the largest", "image/png", encode(t, "png", image.NewGray(image.Rect(0, 0, maxSide, maxSide))), 100, 100, "png"},
	} {
		p, err := NewMaker().Make(t.Context(), tt.data, tt.mediaType, 100)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got, _, err := image.Decode(bytes.NewReader(p.Data))
		if err != nil || p.Extension != tt.extension || got.Bounds().Dx() != tt.w || got.Bounds().Dy() != tt.h {
			t.Errorf("%s became a %s of %v, %v, want a %s of %d x %d", tt.name, p.Extension, got.Bounds(), err, tt.extension, tt.w, tt.h)
		}
		if bytes.Contains(p.Data, []byte("SECRET PLACE")) {
			t.Errorf("%s keeps what stands beside the picture", tt.name)
		}
	}
}

func TestPicturesStandUpright(t *testing.T) {
	t.Parallel()
	red := func(c color.Color) bool { r, _, b, _ := c.RGBA(); return r > b }
	for o, where := range map[byte]image.Point{0: {8, 16}, 1: {8, 16}, 2: {56, 16}, 3: {56, 16}, 4: {8, 16}, 5: {16, 8}, 6: {16, 8}, 7: {16, 56}, 8: {16, 56}, 9: {8, 16}} {
		p, err := NewMaker().Make(t.Context(), held(t, o), "image/jpeg", 100)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := image.Decode(bytes.NewReader(p.Data))
		if err != nil {
			t.Fatal(err)
		}
		other := got.Bounds().Max.Sub(where).Sub(image.Pt(1, 1))
		if !red(got.At(where.X, where.Y)) || red(got.At(other.X, other.Y)) {
			t.Errorf("orientation %d: red is not at %v of %v", o, where, got.Bounds())
		}
	}
}

func TestFilesThatAreNoPicturesAreRefused(t *testing.T) {
	t.Parallel()
	good := encode(t, "png", halves(40, 20, 255))
	for _, tt := range []struct {
		name, mediaType string
		data            []byte
		kind            fault.Kind
	}{
		{"nothing", "image/png", nil, fault.Unsupported},
		{"an SVG", "image/png", []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`), fault.Unsupported},
		{"HTML", "image/gif", []byte(`<html><script>alert(1)</script>`), fault.Unsupported},
		{"a JPEG for a PNG", "image/png", encode(t, "jpeg", halves(4, 4, 255)), fault.Unsupported},
		{"too many bytes", "image/png", append(good, make([]byte, MaxBytes)...), fault.TooLarge},
		{"too many pixels", "image/png", encode(t, "png", image.NewGray(image.Rect(0, 0, maxSide+1, 1))), fault.TooLarge},
		{"a bomb", "image/png", claiming(t, 30_000), fault.TooLarge},
		{"a claim that is not true", "image/png", claiming(t, maxSide), fault.Unprocessable},
		{"no pixels", "image/png", claiming(t, 0), fault.Unprocessable},
		{"half a PNG", "image/png", good[:len(good)/2], fault.Unprocessable},
		{"a JPEG of many scans", "image/jpeg", append(encode(t, "jpeg", halves(4, 4, 255)), bytes.Repeat([]byte{0xFF, startOfScan}, maxScans)...), fault.Unprocessable},
		{"the head of a GIF", "image/gif", []byte("GIF89a"), fault.Unprocessable},
		{"an Exif part that leads nowhere", "image/jpeg", append([]byte{0xFF, 0xD8, 0xFF, app1, 0xFF, 0xFF}, "Exif\x00\x00MM\x00\x2a\xff\xff\xff\xff"...), fault.Unprocessable},
	} {
		if _, err := NewMaker().Make(t.Context(), tt.data, tt.mediaType, 100); fault.KindOf(err) != tt.kind {
			t.Errorf("%s: %v, want kind %d", tt.name, err, tt.kind)
		}
	}
	if orientationOf([]byte("\xFF\xD8\xFF\xE1\x00\x12Exif\x00\x00MM\x00\x2a\xff\xff\xff\xff")) != asSeen {
		t.Error("an orientation is read where there is none")
	}
}

func TestOfALargePictureASmallerOneIsKept(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		from      image.Image
		extension string
	}{{"a photograph", noise(1024, false), "jpg"}, {"one that can be seen through", noise(1024, true), "png"}} {
		p, err := redraw(encode(t, "png", tt.from), IconSide)
		if err != nil || len(p.Data) > MaxBytes || p.Extension != tt.extension {
			t.Errorf("%s: a %s of %d bytes, %v", tt.name, p.Extension, len(p.Data), err)
		}
	}
}

func FuzzOrientation(f *testing.F) {
	f.Add([]byte("\xFF\xD8\xFF\xE1\x00\x22Exif\x00\x00II\x2a\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00"))
	f.Add([]byte(strings.Repeat("\xFF\xD8\xFF\xE1\x00\x02", 9)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if o := orientationOf(data); o < 1 || o > 8 {
			t.Errorf("orientation %d", o)
		}
	})
}
