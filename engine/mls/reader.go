package mls

import "encoding/binary"

// reader reads the fields of a message one after another. The first field that is missing or
// malformed sets err; every later read returns zero and consumes nothing. So callers check err
// only once, at the end.
type reader struct {
	rest []byte
	err  error
}

// finish returns the error of the reading. Bytes that are left over are an error, too.
func (r *reader) finish() error {
	if len(r.rest) > 0 {
		r.fail(ErrTrailing)
	}
	return r.err
}

// fail ends the reading with err. If the reading has failed before, the first error stays.
func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

// take returns the next n bytes.
func (r *reader) take(n int) []byte {
	if n > len(r.rest) || r.err != nil {
		r.fail(ErrTruncated)
		return nil
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}

// readSince returns the bytes that were read since r.rest was equal to start.
func (r *reader) readSince(start []byte) []byte { return start[:len(start)-len(r.rest)] }

func (r *reader) readUint8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) readUint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) readUint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) readUint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// readLength reads the length of a vector, in one, two or four bytes (§2.1.2). A length is
// malformed if a shorter form could hold it.
func (r *reader) readLength() int {
	first := r.readUint8()
	length := int(first & 0x3f)
	switch first >> 6 {
	case 0:
		return length
	case 1:
		return r.checkLength(length<<8|int(r.readUint8()), 1<<6)
	case 2:
		b := r.take(3)
		if b == nil {
			return 0
		}
		return r.checkLength(length<<24|int(b[0])<<16|int(b[1])<<8|int(b[2]), 1<<14)
	}
	r.fail(ErrLength)
	return 0
}

// checkLength returns the given length. It refuses a length below the parameter least, which is
// the smallest length that may be written in this form.
func (r *reader) checkLength(length, least int) int {
	if length < least {
		r.fail(ErrLength)
	}
	return length
}

// readVector reads a vector of bytes.
func (r *reader) readVector() []byte { return r.take(r.readLength()) }

// readList reads a vector of values. The function read reads one value.
func (r *reader) readList(read func(*reader)) {
	values := r.readVector()
	after := r.rest
	r.rest = values
	for len(r.rest) > 0 {
		read(r)
	}
	if r.err == nil {
		r.rest = after
	}
}

// skipNumbers reads a vector of numbers, each of which has the given size in bytes.
func (r *reader) skipNumbers(size int) {
	if len(r.readVector())%size != 0 {
		r.fail(ErrTruncated)
	}
}

// readPresence reads whether an optional value follows (§2.1.1).
func (r *reader) readPresence() bool {
	presence := r.readUint8()
	if presence > 1 {
		r.fail(ErrOptional)
	}
	return presence == 1
}

// skipExtensions reads a list of extensions that a delivery service does not need.
func (r *reader) skipExtensions() {
	r.readList(func(r *reader) { r.readUint16(); r.readVector() })
}

// readVersion reads the version at the start of a message, a key package or a group context.
func (r *reader) readVersion() {
	if r.readUint16() != mls10 {
		r.fail(ErrVersion)
	}
}

// readFormat reads the version and wire format of an MLSMessage, and refuses a format other than
// the parameter want.
func (r *reader) readFormat(want WireFormat) {
	r.readVersion()
	if WireFormat(r.readUint16()) != want {
		r.fail(ErrWireFormat)
	}
}
