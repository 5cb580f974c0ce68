package outbox

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/engine/vocab"
)

// publishedTypes are the types of objects that CreateObject creates.
var publishedTypes = []string{"Audio", "Video", "Product"}

// createObject publishes an Audio, Video (ActivityStreams vocabulary §3.3) or Product.
type createObject struct {
	Type  string          `json:"type" schema:"kind"`
	Title string          `json:"title" schema:"title"`
	File  json.RawMessage `json:"file" schema:"file,optional"`
	post

	file *mediaFile
}

// mediaFile is the file of an Audio or Video. The file stays at its URL. This server never
// fetches it.
type mediaFile struct {
	URL       string `json:"url" schema:"address"`
	MediaType string `json:"mediaType" schema:"mediaType"`
}

func (p *createObject) checkParams() error {
	if !slices.Contains(publishedTypes, p.Type) {
		return badParam("type", "type is "+strings.Join(publishedTypes, ", "))
	}
	if err := checkTitle(p.Title); err != nil {
		return err
	}
	if err := p.readFile(); err != nil {
		return err
	}
	return p.post.checkParams()
}

// readFile reads the parameter file. An Audio or Video must have it, and a Product must not.
func (p *createObject) readFile() error {
	isMedia := p.Type != "Product"
	if isMedia != (len(p.File) > 0) {
		return badParam("file", "an Audio or Video has a file, and a Product has none")
	}
	if !isMedia {
		return nil
	}
	p.file = new(mediaFile)
	if err := readObject(p.File, p.file, "file"); err != nil {
		return err
	}
	if err := checkPresent("file/url", p.file.URL); err != nil {
		return err
	}
	if !mediaTypeForm.MatchString(p.file.MediaType) || !strings.HasPrefix(p.file.MediaType, strings.ToLower(p.Type)+"/") {
		return badParam("file/mediaType", "mediaType of the file is one such as "+strings.ToLower(p.Type)+"/mp4")
	}
	return nil
}

func (p *createObject) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	return p.post.findRecipients(ctx, f, x, note{kind: p.Type, title: p.Title, file: p.file})
}

// setFile writes the address of the object's file, if it has one, in the form that servers of
// audio and video read.
func setFile(d vocab.Doc, file *mediaFile) {
	if file != nil {
		d["url"] = []any{vocab.Doc{"type": "Link", "href": file.URL, "mediaType": file.MediaType}}
	}
}
