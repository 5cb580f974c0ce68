package mls

// Header has the fields of an MLSMessage that a delivery service needs to find the group of the
// message and to order it.
type Header struct {
	WireFormat  WireFormat
	GroupID     []byte      // empty for a Welcome or a KeyPackage
	Epoch       uint64      // zero for a Welcome or a KeyPackage
	ContentType ContentType // for a PublicMessage or a PrivateMessage
}

// ReadHeader reads the header of an MLSMessage, and allocates nothing. It reads a PrivateMessage
// or a Welcome to the end. It reads only the beginning of other messages, whose parsers check the
// rest.
func ReadHeader(message []byte) (Header, error) {
	r := reader{rest: message}
	h := r.readHeader()
	if r.err != nil {
		return Header{}, r.err
	}
	return h, nil
}

func (r *reader) readHeader() (h Header) {
	r.readVersion()
	h.WireFormat = WireFormat(r.readUint16())
	switch h.WireFormat {
	case FormatPublicMessage:
		r.readFrame(&h)
	case FormatPrivateMessage:
		r.readPrivateMessage(&h)
	case FormatWelcome:
		r.readUint16() // cipher_suite
		r.readVector() // secrets
		r.readVector() // encrypted_group_info
		_ = r.finish() // the error stays in r.err
	case FormatGroupInfo:
		_, h.GroupID, h.Epoch = r.readGroup()
	case FormatKeyPackage:
		r.readVersion()
		r.readUint16() // cipher_suite
	default:
		r.fail(ErrWireFormat)
	}
	return h
}

// readFrame reads the FramedContent of a PublicMessage up to and including its content type
// (§6).
func (r *reader) readFrame(h *Header) Sender {
	h.GroupID, h.Epoch = r.readVector(), r.readUint64()
	sender := r.readSender()
	r.readVector() // authenticated_data
	h.ContentType = r.readContentType()
	return sender
}

// readPrivateMessage reads a whole PrivateMessage (§6.3).
func (r *reader) readPrivateMessage(h *Header) {
	h.GroupID, h.Epoch = r.readVector(), r.readUint64()
	h.ContentType = r.readContentType()
	r.readVector() // authenticated_data
	r.readVector() // encrypted_sender_data
	r.readVector() // ciphertext
	_ = r.finish() // the error stays in r.err
}

// readGroup reads the beginning of a GroupContext (§8.1).
func (r *reader) readGroup() (suite CipherSuite, id []byte, epoch uint64) {
	r.readVersion()
	return CipherSuite(r.readUint16()), r.readVector(), r.readUint64()
}

func (r *reader) readContentType() ContentType {
	t := ContentType(r.readUint8())
	if t < ContentApplication || t > ContentCommit {
		r.fail(ErrContentType)
	}
	return t
}
