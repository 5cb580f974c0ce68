package handler_test

import (
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }
