package engine_test

import (
	"slices"
	"strings"
	"testing"
)

// These tests run the checks of floors and doors on small trees with one mistake each, because a
// check that cannot fail is worth nothing.

func TestBreaches(t *testing.T) {
	t.Parallel()
	in := func(name string) string { return module + "/" + name }
	tests := []struct {
		name string
		pkg  goPackage
		want string // "" if the package breaks no rule
	}{
		{"a lower floor is imported", goPackage{ImportPath: in("engine/inbox"), Imports: []string{in("engine/handler"), "context"}}, ""},
		{"main imports cmd", goPackage{ImportPath: module, Imports: []string{in("cmd")}}, ""},
		{"an arrow points up", goPackage{ImportPath: in("db"), Imports: []string{in("engine/handler")}}, "db (floor 4) imports engine/handler (floor 6)"},
		{"an arrow stays on its floor", goPackage{ImportPath: in("engine/inbox"), Imports: []string{in("engine/outbox")}}, "engine/inbox (floor 7) imports engine/outbox (floor 7)"},
		{"a command opens a database", goPackage{ImportPath: in("cmd"), Imports: []string{in("db")}}, "cmd imports db: call engine/admin"},
		{"a task measures", goPackage{ImportPath: in("engine/admin"), Imports: []string{in("db/measure")}}, "engine/admin (floor 9) imports db/measure (floor 11)"},
		{"the engine measures itself", goPackage{ImportPath: in("engine"), Imports: []string{in("db/measure")}}, "engine (floor 11) imports db/measure (floor 11)"},
		{"a command measures", goPackage{ImportPath: in("cmd"), Imports: []string{in("db/measure")}}, "cmd imports db/measure: call engine/admin"},
		{"a command calls a task", goPackage{ImportPath: in("cmd"), Imports: []string{in("engine/admin")}}, ""},
		{"a package has no floor", goPackage{ImportPath: in("engine/util")}, "engine/util has no floor"},
		{"a test file points up", goPackage{ImportPath: in("db"), TestImports: []string{in("engine/event")}}, "db (floor 4) imports engine/event (floor 5) in a test"},
		{"an external test imports its package", goPackage{ImportPath: in("db"), XTestImports: []string{in("db")}}, ""},
		{"a test file uses a test package", goPackage{ImportPath: in("engine/server"), XTestImports: []string{in("engine/enginetest")}}, ""},
		{"production code uses a test package", goPackage{ImportPath: in("engine"), Imports: []string{in("db/dbtest")}}, "engine imports db/dbtest, which is for tests"},
		{"a test package imports from the top", goPackage{ImportPath: in("engine/enginetest"), Imports: []string{in("engine"), in("db/dbtest")}}, ""},
		{"a dependency comes in by its door", goPackage{ImportPath: in("db"), Imports: []string{"github.com/jackc/pgx/v5/pgxpool"}}, ""},
		{"a test uses its package's dependency", goPackage{ImportPath: in("db"), XTestImports: []string{"github.com/jackc/pgx/v5"}}, ""},
		{"a dependency comes in by another door", goPackage{ImportPath: in("engine/feed"), Imports: []string{"github.com/redis/go-redis/v9"}}, "engine/feed imports github.com/redis/go-redis/v9, whose door is engine/keyspace"},
		{"a test takes another door", goPackage{ImportPath: in("engine/inbox"), TestImports: []string{"github.com/jackc/pgx/v5"}}, "engine/inbox imports github.com/jackc/pgx/v5, whose door is db/... in a test"},
		{"a dependency comes in anywhere in its tree", goPackage{ImportPath: in("db/dbtest"), Imports: []string{"github.com/jackc/pgx/v5"}}, ""},
		{"a test package takes another door", goPackage{ImportPath: in("engine/enginetest"), Imports: []string{"github.com/jackc/pgx/v5"}}, "engine/enginetest imports github.com/jackc/pgx/v5, whose door is db/..."},
		{"a free dependency", goPackage{ImportPath: in("engine/delivery"), Imports: []string{"github.com/prometheus/client_golang/prometheus"}}, ""},
		{"a dependency nobody decided on", goPackage{ImportPath: in("cmd"), Imports: []string{"example.org/left-pad"}}, "cmd imports example.org/left-pad, which has no door"},
		{"a path that only begins like a dependency", goPackage{ImportPath: in("db"), Imports: []string{"github.com/jackc/pgxtra"}}, "db imports github.com/jackc/pgxtra, which has no door"},
		{"a testing library in a test", goPackage{ImportPath: in("engine/vocab"), TestImports: []string{"pgregory.net/rapid"}}, ""},
		{"a testing library in a test package", goPackage{ImportPath: in("db/dbtest"), Imports: []string{"go.uber.org/goleak"}}, ""},
		{"a testing library in production", goPackage{ImportPath: in("engine/vocab"), Imports: []string{"pgregory.net/rapid"}}, "engine/vocab imports pgregory.net/rapid, whose door is tests"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(breaches([]goPackage{tt.pkg}), "; ")
			if got != tt.want {
				t.Errorf("breaches(…) = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestClientUses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, src string
		want      []string
	}{
		{"a server is no client", `package p; import "net/http"; var _ http.Handler; const c = http.StatusOK`, nil},
		{"a client value", `package p; import "net/http"; var c http.Client`, []string{"f.go:1:37: http.Client"}},
		{"a call", `package p; import "net/http"; var _, _ = http.Get("x")`, []string{"f.go:1:42: http.Get"}},
		{"under another name", `package p; import web "net/http"; var c = web.DefaultClient`, []string{"f.go:1:43: http.DefaultClient"}},
		{"another package of that name", `package p; import "example.org/http"; var c http.Client`, nil},
		{"a field of that name", `package p; import "net/http"; var h http.Header; var g = h.Get`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := clientUses(t, "f.go", []byte(tt.src)); !slices.Equal(got, tt.want) {
				t.Errorf("clientUses(%s) = %q, want %q", tt.src, got, tt.want)
			}
		})
	}
}
