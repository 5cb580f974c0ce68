package mls

// Welcome is the readable part of a message by which devices join a group (§12.4.3.1).
type Welcome struct {
	Suite       CipherSuite
	KeyPackages [][]byte // the references of the key packages of those devices
}

// ParseWelcome reads an MLSMessage that is a Welcome.
func ParseWelcome(message []byte) (*Welcome, error) {
	r := reader{rest: message}
	r.readFormat(FormatWelcome)
	w := &Welcome{Suite: CipherSuite(r.readUint16())}
	r.readList(w.readSecrets)
	r.readVector() // encrypted_group_info
	if err := r.finish(); err != nil {
		return nil, err
	}
	return w, nil
}

// readSecrets reads one EncryptedGroupSecrets.
func (w *Welcome) readSecrets(r *reader) {
	if len(w.KeyPackages) == MaxMembers {
		r.fail(ErrTooMany)
		return
	}
	w.KeyPackages = append(w.KeyPackages, r.readVector())
	r.readVector() // kem_output
	r.readVector() // ciphertext
}
