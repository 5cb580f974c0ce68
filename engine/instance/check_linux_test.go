package instance_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/instance"
)

// users_dir may be /home. Then it also has directories of people who are not users of the engine.
func TestFoldersThatTheEngineMayNotEnterAreNobodysProfiles(t *testing.T) {
	t.Parallel()
	users := filepath.Join(enginetest.Dir(t), "home")
	if err := errors.Join(os.Mkdir(users, 0o755), os.Mkdir(filepath.Join(users, "person"), 0)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // the test's own thread keeps root's rights, because it removes the directory
		defer close(done)
		// this thread loses root's rights and must not be used again
		runtime.LockOSThread()
		if err := syscall.Setfsuid(65534); err != nil {
			t.Error(err)
			return
		}
		if _, err := os.Stat(filepath.Join(users, "person", "config.json")); !os.IsPermission(err) {
			t.Errorf("look into somebody's home: %v, want that it may not be entered", err)
			return
		}
		if err := instance.CheckFiles(instance.Config{DataDir: users, UsersDir: users}); err != nil {
			t.Errorf("CheckFiles = %v, want nothing wrong", err)
		}
	}()
	<-done
}
