package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Only the packages in decides read the addressing of a post to find its readers. The rest of the
// code writes the properties in members and does not read them.
var (
	decides = []string{"engine/vocab/", "engine/audience/", "db/user/audience.go", "db/dbtest/", "engine/bench/", "engine/enginetest/"}
	members = []string{"to", "cc", "bto", "bcc", "audience"}
	inSQL   = regexp.MustCompile(`'\{?(to|cc|bto|bcc|audience)[',}]`)
)

// readers lists the places outside decides that read these properties, with the reason.
var readers = map[string]string{
	"engine/outbox/note.go To":                     "the parameters of CreateNote",
	"engine/outbox/note.go Cc":                     "the parameters of CreateNote",
	"engine/outbox/note.go to":                     "the parameters of CreateNote, for what is wrong with them",
	"engine/outbox/note.go cc":                     "the parameters of CreateNote, for what is wrong with them",
	"engine/outbox/audit.go to":                    "the parameters of CreateNote, which the audit keeps",
	"engine/outbox/audit.go cc":                    "the parameters of CreateNote, which the audit keeps",
	"engine/outbox/group.go to":                    "the parameters of CreateNote, for what is wrong with them",
	"engine/outbox/block.go to":                    "an Undo is for whoever the Block was for",
	"engine/outbox/construct_activity.go to":       "written",
	"engine/outbox/construct_activity.go cc":       "written",
	"engine/outbox/resolve_recipients.go To":       "what changes or ends something is for whoever that was for",
	"engine/outbox/resolve_recipients.go Cc":       "what changes or ends something is for whoever that was for",
	"engine/outbox/resolve_recipients.go Audience": "what changes or ends something is for whoever that was for",
	"engine/conversation/foreign_send.go to":       "a message that is sent again goes to those that it did not name before",
	"engine/inbox/relayed.go to":                   "copied into the Announce's post",
	"engine/inbox/relayed.go cc":                   "copied into the Announce's post",
	"db/dump/snapshot.go To":                       "a table that a foreign key points to",
	"db/user/deliveries.go Audience":               "stored, for who asks where a post went",
	"db/user/mls_fanout.go Audience":               "stored, for who asks where a post went",
	"db/schema/respell.go audience":                "the column of that",
	"cmd/user_move.go to":                          "a flag",
	"cmd/mutate/report.go To":                      "the text that a mistake puts there",
	"cmd/mutate/source.go To":                      "the text that a mistake puts there",
	"cmd/mutate/operators.go audience":             "the package",
}

func TestOneRoomDecidesWhoSomethingIsFor(t *testing.T) {
	expectOneRoom(t, decides, readings, readers, "%s reads %q: engine/audience decides who something is for")
}

// expectOneRoom fails the test if find() finds something in a file outside the rooms that is not
// among the exceptions, or no longer finds an exception. The complaint is a format for the position
// and for what is found there.
func expectOneRoom(t *testing.T, rooms []string, find func(*ast.File) map[string]token.Pos, exceptions map[string]string, complaint string) {
	t.Helper()
	found := map[string]token.Position{}
	files := token.NewFileSet()
	for _, root := range []string{"../db", "../engine", "../cmd"} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			name := strings.TrimPrefix(filepath.ToSlash(path), "../")
			if err != nil || e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
				slices.ContainsFunc(rooms, func(room string) bool { return strings.HasPrefix(name, room) }) {
				return err
			}
			f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err == nil {
				for what, at := range find(f) {
					found[name+" "+what] = files.Position(at)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, at := range found {
		if exceptions[what] == "" {
			t.Errorf(complaint, at, what)
		}
	}
	for what := range exceptions {
		if _, there := found[what]; !there {
			t.Errorf("nothing is at %s any more", what)
		}
	}
}

// readings returns the properties of members that a file reads, as fields or by their names, with
// the position of each.
func readings(f *ast.File) map[string]token.Pos {
	read, written := map[string]token.Pos{}, map[ast.Node]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if at, ok := left.(*ast.IndexExpr); ok {
					written[at.Index] = true
				}
			}
		case *ast.CompositeLit:
			for _, part := range n.Elts {
				if pair, ok := part.(*ast.KeyValueExpr); ok && !isMap(n) {
					written[pair.Key] = true
				}
			}
		case *ast.Field:
			written[n.Tag] = n.Tag != nil
		case *ast.SelectorExpr:
			package_, _ := n.X.(*ast.Ident)
			if slices.Contains(members, strings.ToLower(n.Sel.Name)) && ast.IsExported(n.Sel.Name) && (package_ == nil || package_.Name != "audience") {
				read[n.Sel.Name] = n.Pos()
			}
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if n.Kind != token.STRING || err != nil || written[n] {
				return true
			}
			if slices.Contains(members, text) {
				read[text] = n.Pos()
			}
			if m := inSQL.FindStringSubmatch(text); m != nil {
				read[m[1]] = n.Pos()
			}
		}
		return true
	})
	return read
}

// isMap reports whether a literal has a map type, so that code can range over it. A document that
// code writes does not.
func isMap(l *ast.CompositeLit) bool {
	_, is := l.Type.(*ast.MapType)
	return is
}
