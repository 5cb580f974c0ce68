package vocab

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

// corpus returns the directory of W3C's test documents for ActivityStreams 2.0.
func corpus(t *testing.T) string {
	root := "../../../shared/vectors"
	if dir := os.Getenv("LIGHTWEB_VECTORS"); dir != "" {
		root = dir
	}
	dir := filepath.Join(root, "activitystreams")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("LIGHTWEB_TEST_ALL") == "1" {
			t.Fatalf("the ActivityStreams test documents are missing: %v", err)
		}
		t.Skipf("the ActivityStreams test documents are not in %s; LIGHTWEB_VECTORS says where they are", dir)
	}
	return dir
}

// noJSON names the only document outside fail/ that is not JSON. One of its strings contains a
// line break.
const noJSON = "vocabulary-ex196-jsonld.json"

func TestDocumentsOfTheW3CParse(t *testing.T) {
	files := 0
	err := filepath.WalkDir(corpus(t), func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".json" || e.Name() == "package.json" {
			return err
		}
		files++
		t.Run(strings.TrimSuffix(e.Name(), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			d, err := ParseDoc(raw)
			if err != nil {
				if filepath.Base(filepath.Dir(path)) != "fail" && e.Name() != noJSON || fault.KindOf(err) != fault.Invalid {
					t.Errorf("ParseDoc: %v, want it taken", err)
				}
				return
			}
			if back, err := ParseDoc(d.JSON()); err != nil || !reflect.DeepEqual(back, d) {
				t.Errorf("written and read again: %v, %v; want the same", back, err)
			}
			_, activityErr := ActivityOf(d, raw)
			_, objectErr := ObjectOf(d)
			_, actorErr := ActorOf(d, raw)
			for _, err := range []error{activityErr, objectErr, actorErr} {
				if err != nil && fault.KindOf(err) != fault.Invalid {
					t.Errorf("%v, want invalid", err)
				}
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 200 {
		t.Errorf("%d documents, want the whole corpus", files)
	}
}

// W3C's corpus calls some documents invalid. The engine refuses such a document if it would act on
// the invalid property. Otherwise it reads the property as absent.
func TestDocumentsOfTheW3CThatMustFail(t *testing.T) {
	const (
		document = "the document is refused"
		typ      = "the type is refused"
		activity = "the activity is refused because of the property itself"
		object   = "the object is refused"
		absent   = "it is read, and the property is absent"
		ignored  = "it is read: the property is for nobody here"
	)
	tests := []struct{ file, property, want string }{
		{"array-at-top", "", document},
		{"number-at-top", "", document},
		{"string-at-top", "", document},
		{"bad-character-set", "", document},
		{"number-as-type", "", typ},
		{"number-as-id", "", object},
		{"number-as-actor", "actor", activity},
		{"number-as-object", "object", activity},
		{"number-as-content", "content", absent},
		{"number-as-name", "name", absent},
		{"namemap-as-name", "name", absent},
		{"name-as-namemap", "name", absent},
		{"content-map-with-invalid-language-tag", "", ignored},
		{"number-as-context", "", ignored},
		{"other-context", "", object}, // this document has no id
		{"relative-uri-for-url", "", ignored},
		{"collection-with-non-page-first", "", ignored},
		{"ordered-collection-with-items", "", ignored},
		{"ordered-collection-with-non-page-first", "", ignored},
		{"unordered-collection-with-ordered-items", "", ignored},
	}
	dir := filepath.Join(corpus(t), "fail")
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != len(tests) {
		t.Errorf("%d documents, %v; want %d", len(files), err, len(tests))
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(dir, tt.file+".json"))
			if err != nil {
				t.Fatal(err)
			}
			d, err := ParseDoc(raw)
			switch tt.want {
			case typ:
				_, err = d.Type()
			case object:
				_, err = ObjectOf(d)
			case activity:
				_, err = d.Ref(tt.property)
			case absent:
				if err != nil || d.Words(tt.property) != "" {
					t.Errorf("%s reads %q, %v; %s", tt.property, d.Words(tt.property), err, tt.want)
				}
				return
			case ignored:
				if err != nil {
					t.Errorf("%v; %s", err, tt.want)
				}
				return
			}
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("%v; %s", err, tt.want)
			}
			if _, err := ParseActivity(raw); fault.KindOf(err) != fault.Invalid {
				t.Errorf("ParseActivity: %v, want invalid", err)
			}
		})
	}
}
