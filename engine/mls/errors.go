package mls

import "github.com/lightweb/lightweb/engine/fault"

// Reasons why bytes are not a message of RFC 9420.
var (
	ErrTruncated   error = fault.New(fault.Invalid, "the MLS message ends in the middle of a field")
	ErrTrailing    error = fault.New(fault.Invalid, "bytes follow the end of the MLS message")
	ErrLength      error = fault.New(fault.Invalid, "a length in the MLS message is malformed, or longer than it has to be")
	ErrVersion     error = fault.New(fault.Invalid, "the MLS message is not of version mls10")
	ErrWireFormat  error = fault.New(fault.Invalid, "the MLS message is of another wire format")
	ErrContentType error = fault.New(fault.Invalid, "the content of the MLS message is no application message, proposal or commit")
	ErrSender      error = fault.New(fault.Invalid, "the sender of the MLS message may not send this content")
	ErrProposal    error = fault.New(fault.Invalid, "the MLS message has a proposal of an unknown type")
	ErrOptional    error = fault.New(fault.Invalid, "an optional field of the MLS message is neither present nor absent")
	ErrLeafSource  error = fault.New(fault.Invalid, "the MLS leaf was not made for this use")
	ErrCredential  error = fault.New(fault.Invalid, "the MLS credential is neither basic nor X.509")
	ErrExtension   error = fault.New(fault.Invalid, "the MLS group info has an extension twice")
	ErrTree        error = fault.New(fault.Invalid, "the MLS ratchet tree is malformed")
	ErrTooMany     error = fault.New(fault.Invalid, "the MLS message has more members or proposals than a group may have")
)

// Reasons why a well-formed message is not valid.
var (
	ErrSuite     error = fault.New(fault.Invalid, "the MLS cipher suite is not supported")
	ErrIdentity  error = fault.New(fault.Invalid, "the MLS credential does not name this actor")
	ErrLifetime  error = fault.New(fault.Invalid, "the MLS key package is not valid now, or is valid for too long")
	ErrKey       error = fault.New(fault.Invalid, "a key in the MLS key package is no key of its cipher suite, or is there twice")
	ErrSignature error = fault.New(fault.Invalid, "a signature in the MLS message does not hold")
	ErrGroup     error = fault.New(fault.Invalid, "the MLS message belongs to another group or epoch")
	ErrMember    error = fault.New(fault.Invalid, "the MLS message was not sent by a member of the group")
)
