package instance_test

import (
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }
