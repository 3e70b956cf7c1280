// The oracle evaluates requests with Go's own libraries: one JSON request per line on standard input, one JSON response
// per line on standard output. It is used only by tests and never ships.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/strvals"
)

// request is one evaluation. Text and JSON are base64, so that they can contain any bytes.
type request struct {
	Op    string `json:"op"`
	Text  []byte `json:"text"`
	JSON  []byte `json:"json"`
	Funcs string `json:"funcs"`
	Mode  string `json:"mode"`
	// Chart, Values and Runs belong to the op "bench".
	Chart  string `json:"chart"`
	Values string `json:"values"`
	Runs   int    `json:"runs"`
}

type response struct {
	Out []byte `json:"out"`
	Err string `json:"err,omitempty"`
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		reply, err := json.Marshal(respond(line))
		if err != nil {
			reply = []byte(`{"err":"unprintable response"}`)
		}
		out.Write(reply)
		out.WriteByte('\n')
		if in.Buffered() == 0 {
			out.Flush()
		}
	}
}

// respond never panics: a panic of the evaluated code is returned as an error.
func respond(line []byte) (reply response) {
	defer func() {
		if cause := recover(); cause != nil {
			reply = response{Err: fmt.Sprintf("panic: %v", cause)}
		}
	}()
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return response{Err: "bad request: " + err.Error()}
	}
	out, err := ask(asked)
	if err != nil {
		return response{Out: out, Err: err.Error()}
	}
	return response{Out: out}
}

func ask(asked request) ([]byte, error) {
	switch asked.Op {
	case "template":
		return runTemplate(asked)
	case "strvals":
		return parseSet(asked)
	case "unmarshal":
		var value any
		if err := yaml.Unmarshal(asked.Text, &value); err != nil {
			return nil, err
		}
		return json.Marshal(value)
	case "toYaml", "toYamlPretty", "toJson", "toPrettyJson", "toRawJson", "toToml", "mustToYaml", "mustToJson", "mustToToml":
		return helm("{{ "+asked.Op+" .Values.v }}", func(value any) any { return map[string]any{"v": value} }, asked.JSON)
	case "fromYaml", "fromYamlArray", "fromJson", "fromJsonArray", "fromToml":
		text := string(asked.Text)
		return helm("{{ "+asked.Op+" .Values.v | toJson }}", func(any) any { return map[string]any{"v": text} }, []byte("null"))
	case "bench":
		return bench(asked)
	default:
		return nil, fmt.Errorf("unknown op %q", asked.Op)
	}
}

func runTemplate(asked request) ([]byte, error) {
	if asked.Funcs == "helm" {
		return helm(string(asked.Text), func(value any) any { return value }, asked.JSON)
	}
	var dot any
	if err := json.Unmarshal(asked.JSON, &dot); err != nil {
		return nil, err
	}
	t := template.New("t")
	if asked.Funcs == "sprig" {
		t = t.Funcs(sprig.TxtFuncMap())
	}
	t, err := t.Parse(string(asked.Text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, dot)
	return out.Bytes(), err
}

// helm renders one template in a chart "t" whose values are the data.
func helm(text string, values func(any) any, data []byte) ([]byte, error) {
	var decoded any
	if err := json.Unmarshal(data, &decoded); err != nil {
		return nil, err
	}
	c := &chart.Chart{
		Metadata:  &chart.Metadata{Name: "t", Version: "1.2.3", APIVersion: "v2"},
		Templates: []*common.File{{Name: "templates/t", Data: []byte(text)}},
	}
	rendered, err := engine.Render(c, common.Values{
		"Values":       values(decoded),
		"Chart":        c.Metadata,
		"Capabilities": common.DefaultCapabilities,
		"Release":      map[string]any{"Name": "r", "Namespace": "n", "Service": "Helm", "IsUpgrade": false, "IsInstall": true, "Revision": 1},
	})
	return []byte(rendered["t/templates/t"]), err
}

func parseSet(asked request) ([]byte, error) {
	values := map[string]any{}
	if len(asked.JSON) > 0 {
		if err := json.Unmarshal(asked.JSON, &values); err != nil {
			return nil, err
		}
	}
	text := string(asked.Text)
	var err error
	switch asked.Mode {
	case "string":
		err = strvals.ParseIntoString(text, values)
	case "json":
		err = strvals.ParseJSON(text, values)
	case "literal":
		err = strvals.ParseLiteralInto(text, values)
	case "file":
		err = strvals.ParseIntoFile(text, values, func(path []rune) (any, error) { return "<" + string(path) + ">", nil })
	default:
		err = strvals.ParseInto(text, values)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(values)
}
