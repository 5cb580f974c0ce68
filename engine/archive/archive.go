// Package archive writes and reads backup files. A backup is a tar, packed with gzip, that begins
// with a manifest and ends with the SHA-256 sums of all other entries. A backup holds rows and
// files. It never holds a statement to execute or a path to write to.
package archive

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// format is the version of the archives that this package writes, and the newest that it reads.
const format = 3 // version 2 added pictures, version 3 added documents

// FirstEntry is the name of the manifest, by which an archive is recognized.
const FirstEntry = "manifest.json"

// sumsName is the name of the last entry of an archive. Its content has the form that sha256sum
// -c reads.
const sumsName = "SHA256SUMS"

// Manifest describes an archive.
type Manifest struct {
	Format    int       `json:"lightweb_backup"` // set by NewWriter
	Version   string    `json:"lightweb"`        // the version that wrote it
	CreatedAt time.Time `json:"created_at"`      // a time before the first row was read
	PublicURL string    `json:"public_url"`      // the origin of every id in it
	Whole     bool      `json:"whole"`           // true for an instance, false for one user
	Keys      bool      `json:"keys"`            // private keys are in it
	Users     []User    `json:"users"`
}

// User is a user whose data is in an archive.
type User struct {
	Name          vocab.Username `json:"user"`
	State         string         `json:"state"`
	SchemaVersion int            `json:"schema_version"`
}

// Kind says what kind of content an entry has.
type Kind string

// The kinds of entries. All entries of one user, or of the instance, follow each other, and the
// shape is before any rows. Documents are among the entries of their user.
const (
	Shape  Kind = "database.json" // the columns of the tables that follow
	Rows   Kind = "database"      // rows of one table of the user's database, or of the instance's
	Known  Kind = "rows"          // rows of one table of the instance's database that belong to the user
	Config Kind = "config.json"   // configuration: the user's, or the instance's policy
	Key    Kind = "keys"          // a private key
	Media  Kind = "media"         // a picture of the user's profile

	// Document is JSON about the user for other programs. It has no folder in its name, because
	// those programs look for it at the top of the archive. It can be of any size.
	Document Kind = "document"
)

// Name is the parsed name of an entry. Only names of this form are read, and none is ever used
// as a path.
type Name struct {
	User vocab.Username // the user that the entry belongs to; zero: the instance, or a Document
	Kind Kind
	Item string // for Rows and Known the table; for Key, Media and Document the file
}

// isInParts reports whether the content may be spread over several entries.
func (n Name) isInParts() bool { return n.Kind == Rows || n.Kind == Known }

// String returns the name in the archive. For a part of rows, partName appends the number of the
// part.
func (n Name) String() string {
	if n.Kind == Document {
		return n.Item
	}
	s := "instance/"
	if !n.User.IsZero() {
		s = "users/" + n.User.String() + "/"
	}
	if s += string(n.Kind); n.Item != "" {
		s += "/" + n.Item
	}
	return s
}

func (n Name) partName(number int) string { return fmt.Sprintf("%s/%06d", n, number) }

var documentForm = regexp.MustCompile(`^[a-z]{1,30}\.json$`)

var nameForm = regexp.MustCompile(`^(?:instance|users/([a-z0-9_]{1,30}))/` +
	`(?:(database\.json|config\.json)|(keys)/([a-z0-9-]{1,40}\.pem)|(media)/([0-9a-f]{32}\.(?:png|jpg))|(database|rows)/([a-z_][a-z0-9_]{0,62})/([0-9]{6,12}))$`)

// parseName parses a name that String or partName made, and refuses every other name.
func parseName(s string) (n Name, part int, err error) {
	if documentForm.MatchString(s) && s != FirstEntry {
		return Name{Kind: Document, Item: s}, 0, nil
	}
	m := nameForm.FindStringSubmatch(s)
	if m == nil {
		return Name{}, 0, damagedFault(fmt.Errorf("it holds %.80q", s))
	}
	n.Kind, n.Item = Kind(m[2]+m[3]+m[5]+m[7]), m[4]+m[6]+m[8]
	if m[1] != "" {
		if n.User, err = vocab.ParseUsername(m[1]); err != nil {
			return Name{}, 0, damagedFault(err)
		}
	}
	if n.isInParts() {
		part, err = strconv.Atoi(m[9])
	}
	return n, part, err
}

// damagedFault returns the fault for an archive that differs from what was written.
func damagedFault(why error) error {
	return fault.Wrap(fault.Invalid, "the archive is damaged", why).WithCode("archive_damaged").WithHint("nothing was changed; take another backup")
}
