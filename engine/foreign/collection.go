package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/lightweb/lightweb/engine/vocab"
)

// maxItem is the greatest size of one item of a collection, or of another property of the
// collection, in bytes.
const maxItem = 64 << 20

// ReadItems calls the function visit for each item of a collection. It holds only one item in
// memory at a time. The fault is Invalid if the input is not a collection.
func ReadItems(r io.Reader, visit func(item json.RawMessage) error) error {
	part := &partReader{from: r}
	d := json.NewDecoder(part)
	if err := expectDelim(d, '{'); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return damagedFault(err)
		}
		if name == "orderedItems" || name == "items" {
			if err := readArray(d, part, visit); err != nil {
				return err
			}
			continue
		}
		if err := skipValue(d, part); err != nil {
			return err
		}
	}
	return expectDelim(d, '}')
}

// ReadID returns an item of a collection as an id. The fault is Invalid if the item is not an id.
func ReadID(item json.RawMessage) (vocab.ID, error) {
	var s string
	err := json.Unmarshal(item, &s)
	id, bad := vocab.ParseID(s)
	if err = errors.Join(err, bad); err != nil {
		return "", damagedFault(fmt.Errorf("%.60q in it is not an id: %w", item, err))
	}
	return id, nil
}

func readArray(d *json.Decoder, part *partReader, visit func(json.RawMessage) error) error {
	if err := expectDelim(d, '['); err != nil {
		return err
	}
	for d.More() {
		part.n = 0
		var item json.RawMessage
		if err := d.Decode(&item); err != nil {
			return damagedFault(err)
		}
		if err := visit(item); err != nil {
			return err
		}
	}
	part.n = 0
	return expectDelim(d, ']')
}

func skipValue(d *json.Decoder, part *partReader) error {
	part.n = 0
	var value json.RawMessage
	if err := d.Decode(&value); err != nil {
		return damagedFault(err)
	}
	return nil
}

func expectDelim(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err == nil && t != want {
		err = fmt.Errorf("it has %.40q in the place of %s", fmt.Sprint(t), want)
	}
	if err != nil {
		return damagedFault(err)
	}
	return nil
}

// ReadDoc reads a document of at most 64 MiB.
func ReadDoc(r io.Reader) (vocab.Doc, error) {
	data, err := io.ReadAll(&partReader{from: r})
	if err != nil {
		return nil, err
	}
	d, err := vocab.ParseDoc(data)
	if err != nil {
		return nil, damagedFault(err)
	}
	return d, nil
}

// partReader fails when more than maxItem bytes of one part are read. The caller sets n to 0 at
// the start of a part.
type partReader struct {
	from io.Reader
	n    int64
}

func (p *partReader) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	if p.n += int64(n); p.n > maxItem {
		return 0, damagedFault(errors.New("one item in it is larger than 64 MiB"))
	}
	return n, err
}
