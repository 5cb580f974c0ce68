package daemon

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

// If root starts a server, the server runs as a system user of its own. It does not run as the
// user nobody: other programs run as nobody, and could read the server's files.
func TestRootGivesTheServerToAnAccountOfItsOwn(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to give folders away")
	}
	system := map[string]string{"lightweb": "801", "postgres": "802", "nobody": "803"}
	for _, tt := range []struct {
		name  string
		has   string // the system's users
		owner int    // the owner of the data directory
		want  int    // the account that the server gets; 0 if it is refused
	}{
		{"lightweb first", "lightweb postgres nobody", 0, 801},
		{"else postgres", "postgres nobody", 0, 802},
		{"never nobody", "nobody", 0, 0},
		{"the owner of the folder before both", "lightweb postgres nobody", 900, 900},
		{"but for nobody", "lightweb postgres nobody", 803, 801},
		{"not even where there is none else", "nobody", 803, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Chown(dir, tt.owner, tt.owner); err != nil {
				t.Fatal(err)
			}
			look := accounts(func(name string) (*user.User, error) {
				if !strings.Contains(tt.has, name) {
					return nil, user.UnknownUserError(name)
				}
				return &user.User{Uid: system[name], Gid: system[name]}, nil
			})
			a, err := look.unprivileged(dir, filepath.Join(dir, "pg", "PG_VERSION"))
			if tt.want == 0 {
				if fault.KindOf(err) != fault.Config || fault.Hint(err) != "'useradd --system lightweb'" {
					t.Errorf("unprivileged = %+v, %v, hint %q; want that a user is to be made", a, err, fault.Hint(err))
				}
				return
			}
			if err != nil || a.UID != tt.want || a.GID != tt.want || !a.Drop || a.Shared {
				t.Errorf("unprivileged = %+v, %v, want user %d", a, err, tt.want)
			}
		})
	}
}
