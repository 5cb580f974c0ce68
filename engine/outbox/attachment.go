package outbox

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of the attachments of a note.
const (
	maxAttached = 16
	maxAltText  = 1500 // characters
)

// attachment is a file that a note shows. The file stays at its URL. This server never fetches
// it.
type attachment struct {
	URL       string `json:"url" schema:"address"`
	MediaType string `json:"mediaType" schema:"mediaType"`
	Name      string `json:"name" schema:"alt,optional"` // describes the file to people who cannot see it
	// FocalPoint has x and y of the point that a cropped image shows in its middle. The lower
	// left corner is -1, -1, and the upper right corner is 1, 1.
	FocalPoint []float64 `json:"focalPoint" schema:"focalPoint,optional"`
}

var mediaTypeForm = regexp.MustCompile(`^(image|video|audio|application|text)/[a-z0-9][a-z0-9.+-]{0,60}$`)

// readAttachments reads the parameter attachments.
func readAttachments(raw []json.RawMessage) (all []attachment, err error) {
	if len(raw) > maxAttached {
		return nil, badParam("attachments", "more than 16 attachments")
	}
	for n, r := range raw {
		var a attachment
		place := fmt.Sprintf("attachments/%d", n)
		if err := readObject(r, &a, place); err != nil {
			return nil, err
		}
		if err := a.check(place); err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

func (a attachment) check(place string) error {
	if err := checkPresent(place+"/url", a.URL); err != nil {
		return err
	}
	if !mediaTypeForm.MatchString(a.MediaType) {
		return badParam(place+"/mediaType", "mediaType is one such as image/png")
	}
	if n := len(a.FocalPoint); n != 0 && n != 2 {
		return badParam(place+"/focalPoint", "focalPoint is two numbers")
	}
	for _, f := range a.FocalPoint {
		if f < -1 || f > 1 {
			return badParam(place+"/focalPoint", "focalPoint is two numbers from -1 to 1")
		}
	}
	return nil
}

// doc returns the attachment as an object that other servers can read (ActivityStreams vocabulary
// §3.3). A video or sound is a Document, because Lemmy refuses a note with an attachment of any
// type but Link, Image and Document.
func (a attachment) doc() vocab.Doc {
	kind := "Document"
	if strings.HasPrefix(a.MediaType, "image/") {
		kind = "Image"
	}
	d := vocab.Doc{"type": kind, "url": a.URL, "mediaType": a.MediaType}
	if a.Name != "" {
		d["name"] = a.Name
	}
	if len(a.FocalPoint) == 2 {
		d["focalPoint"] = []any{asThousandths(a.FocalPoint[0]), asThousandths(a.FocalPoint[1])}
	}
	return d
}

// asThousandths rounds a number to thousandths. It writes the number as every JSON library
// would, because the user's proof (the signature in the document) covers the written form.
func asThousandths(f float64) json.Number {
	return json.Number(strconv.FormatFloat(math.Round(f*1000)/1000+0, 'f', -1, 64))
}

func setAttachments(d vocab.Doc, all []attachment) {
	delete(d, "attachment")
	if len(all) == 0 {
		return
	}
	docs := make([]any, len(all))
	for n, a := range all {
		docs[n] = a.doc()
	}
	d["attachment"] = docs
}
