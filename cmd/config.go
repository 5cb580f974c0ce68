package cmd

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/registry"
)

// origin is the place where the value of a setting was written, in words for people.
type origin string

const byDefault origin = "default"

const configEnv = "LIGHTWEB_CONFIG"

// written is the text of a setting's value, and where it was written.
type written struct {
	text string
	from origin
}

// configReader reads the settings from flags, the environment and the configuration file.
type configReader struct {
	env   environment
	file  string // the file that --config names; empty for none
	flags *pflag.FlagSet
}

// config reads the settings for the command that runs.
func (a *app) config() (*config, error) {
	r := configReader{env: a.env, file: a.configFile, flags: a.command.Flags()}
	return r.readConfig()
}

// readConfig reads the settings. A flag overrides the environment, the environment overrides the
// file, and the file overrides the default.
func (r *configReader) readConfig() (*config, error) {
	values := map[string]written{}
	file, err := r.readFile(values)
	if err != nil {
		return nil, err
	}
	if err := r.readEnvironment(values); err != nil {
		return nil, err
	}
	if err := r.readFlags(values); err != nil {
		return nil, err
	}
	return r.settleConfig(file, values)
}

// settleConfig builds the configuration from the written values, and checks it.
func (r *configReader) settleConfig(file string, values map[string]written) (*config, error) {
	dataDir := values["data_dir"].text
	if dataDir == "" {
		var err error
		if dataDir, err = r.defaultDataDir(); err != nil {
			return nil, err
		}
	}
	var abs path
	if err := abs.Set(dataDir); err != nil {
		return nil, fmt.Errorf("find data_dir: %w", err)
	}
	c := defaultConfig(string(abs))
	c.Engine.Version = build().Version
	c.file = file
	for _, s := range settings {
		v, ok := values[s.key]
		if !ok {
			continue
		}
		c.origins[s.key] = v.from
		if err := s.at(c).Set(v.text); err != nil {
			return nil, wrongSetting(s.wrongValue(err), v.from)
		}
	}
	err := c.Engine.Validate()
	if wrong, ok := errors.AsType[*instance.SettingError](err); ok {
		return nil, wrongSetting(wrong, c.originOf(wrong.Key))
	}
	return c, err
}

func (c *config) originOf(key string) origin {
	if o, ok := c.origins[key]; ok {
		return o
	}
	return byDefault
}

func wrongSetting(e *instance.SettingError, from origin) error {
	return fault.New(fault.Config, fmt.Sprintf("%s (%s)", e.Error(), from)).WithHint(e.Hint)
}

// defaultDataDir returns the default data folder: /var/lib/lightweb for root, and otherwise a
// folder that follows the XDG base directory specification.
func (r *configReader) defaultDataDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/lightweb", nil
	}
	if d := r.env.find("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "lightweb"), nil
	}
	if d := r.env.find("HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, ".local", "share", "lightweb"), nil
	}
	return "", fault.New(fault.Config, "data_dir: there is no home folder to put it in").WithHint("set --data-dir or LIGHTWEB_DATA_DIR")
}

// readFlags reads the flags that were given.
func (r *configReader) readFlags(values map[string]written) error {
	for _, s := range settings {
		f := r.flags.Lookup(s.flag)
		if s.flag == "" || f == nil || !f.Changed {
			continue
		}
		v := written{f.Value.String(), origin("flag --" + s.flag)}
		if s.fromFlag != nil {
			var err error
			if v.text, err = s.fromFlag(v.text); err != nil {
				return wrongSetting(s.wrongValue(err), v.from)
			}
		}
		values[s.key] = v
	}
	return nil
}

// readEnvironment reads the settings' variables. It refuses a variable that has our prefix but
// belongs to no setting.
func (r *configReader) readEnvironment(values map[string]written) error {
	known := map[string]*setting{}
	for i, s := range settings {
		known[s.env()] = &settings[i]
		if s.secret {
			known[s.env()+"_FILE"] = &settings[i]
		}
	}
	for _, e := range r.env {
		name, text, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, "LIGHTWEB_") || notASetting(name) {
			continue
		}
		s := known[name]
		if s == nil {
			return unknownVariable(name, slices.Sorted(maps.Keys(known)))
		}
		if name != s.env() {
			if r.env.find(s.env()) != "" {
				return fault.New(fault.Config, "both "+s.env()+" and "+name+" are set").WithHint("unset one of them")
			}
			content, err := os.ReadFile(text)
			if err != nil {
				return fault.Wrap(fault.Config, fmt.Sprintf("%s: cannot read %.200q: %s", name, text, reason(err)), err)
			}
			text = strings.TrimRight(string(content), "\r\n")
		} else if s.secret && text == "" && r.env.find(name+"_FILE") != "" {
			continue
		}
		values[s.key] = written{text, origin("environment " + name)}
	}
	return r.readInboxRatesOff(values)
}

func (r *configReader) readInboxRatesOff(values map[string]written) error {
	switch v := r.env.find(inboxRatesOff); v {
	case "":
	case "off":
		for _, key := range []string{"limits.inbox_address_rate", "limits.inbox_host_rate", "limits.inbox_actor_rate"} {
			values[key] = written{"off", origin("environment " + inboxRatesOff)}
		}
	default:
		return fault.New(fault.Config, fmt.Sprintf("%s: %.60q is not off", inboxRatesOff, v)).
			WithHint("set LIGHTWEB_LIMITS_INBOX_HOST_RATE or LIGHTWEB_LIMITS_INBOX_ACTOR_RATE to a rate")
	}
	return nil
}

// serviceAddress matches the variables that Kubernetes sets in every container for each service
// whose name is lightweb or begins with lightweb-. They have the address of the service.
var serviceAddress = regexp.MustCompile(`^LIGHTWEB_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_.+)?)?)$`)

// notASetting reports whether a variable with our prefix is known and is not a setting. Parts of
// the engine and our tests read such variables, and Kubernetes sets some (see serviceAddress).
func notASetting(name string) bool {
	switch name {
	case configEnv, inboxRatesOff, "LIGHTWEB_PG_BIN", "LIGHTWEB_REDIS_BIN", "LIGHTWEB_VECTORS", "LIGHTWEB_FEDIFY_DIR":
		return true
	}
	return strings.HasPrefix(name, "LIGHTWEB_TEST_") || serviceAddress.MatchString(name)
}

func unknownVariable(name string, known []string) error {
	err := fault.New(fault.Config, fmt.Sprintf("unknown environment variable %.100s", name))
	if near := registry.Nearest(name, known); near != "" {
		return err.WithHint("did you mean " + near + "?")
	}
	return err.WithHint("lightweb config show lists the settings; the variable of log.level is LIGHTWEB_LOG_LEVEL")
}

// readFile reads the settings in the configuration file, and returns the name of the file, or ""
// if there is none.
func (r *configReader) readFile(values map[string]written) (string, error) {
	name, content, err := r.findFile()
	if err != nil || name == "" {
		return "", err
	}
	document := map[string]any{}
	if _, err := toml.Decode(content, &document); err != nil {
		if p, ok := errors.AsType[toml.ParseError](err); ok {
			return "", fault.New(fault.Config, fmt.Sprintf("%s line %d: %s", name, p.Position.Line, p.Message))
		}
		return "", fault.Wrap(fault.Config, name+" cannot be read as TOML", err)
	}
	leaves := map[string]any{}
	flattenTable("", document, leaves)
	for _, key := range slices.Sorted(maps.Keys(leaves)) {
		from := origin(name)
		if line := lineOf(content, key); line > 0 {
			from = origin(fmt.Sprintf("%s line %d", name, line))
		}
		i := slices.IndexFunc(settings, func(s setting) bool { return s.key == key })
		if i < 0 {
			return "", unknownKey(key, from)
		}
		text, err := asText(leaves[key])
		if err != nil {
			return "", wrongSetting(settings[i].wrongValue(err), from)
		}
		values[key] = written{text, from}
	}
	return name, nil
}

// flattenTable puts the leaves of a TOML document into leaves, under their full keys.
func flattenTable(prefix string, v any, leaves map[string]any) {
	table, ok := v.(map[string]any)
	if !ok {
		leaves[prefix] = v
		return
	}
	for key, value := range table {
		flattenTable(strings.TrimPrefix(prefix+"."+key, "."), value, leaves)
	}
}

// asText returns a TOML value in the form that it would have in the environment.
func asText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool, int64:
		return fmt.Sprint(v), nil
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			s, ok := item.(string)
			if !ok {
				return "", fmt.Errorf("item %d of the list is not a text", i+1)
			}
			items[i] = s
		}
		return strings.Join(items, ","), nil
	}
	return "", errors.New("a text, a whole number, true, false or a list of texts is taken")
}

func unknownKey(key string, from origin) error {
	err := fault.New(fault.Config, fmt.Sprintf("unknown setting %.100s (%s)", key, from))
	keys, last := make([]string, len(settings)), map[string]string{}
	for i, s := range settings {
		keys[i] = s.key
		last[lastPart(s.key)] = s.key
	}
	near := registry.Nearest(key, keys)
	if near == "" { // perhaps only the table is wrong or missing
		near = last[registry.Nearest(lastPart(key), slices.Sorted(maps.Keys(last)))]
	}
	if near != "" {
		return err.WithHint("did you mean " + near + "?")
	}
	return err.WithHint("lightweb config show lists the settings")
}

func lastPart(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// lineOf returns the number of the line in content that sets key. It returns 0 if the line has a
// form that lineOf does not understand.
func lineOf(content, key string) int {
	table, n := "", 0
	for line := range strings.Lines(content) {
		n++
		line = strings.TrimSpace(line)
		if inner, ok := strings.CutPrefix(line, "["); ok {
			inner, _, _ = strings.Cut(inner, "]")
			table = strings.TrimSpace(inner) + "."
			continue
		}
		name, _, ok := strings.Cut(line, "=")
		if ok && strings.TrimPrefix(table+strings.TrimSpace(name), ".") == key {
			return n
		}
	}
	return 0
}
