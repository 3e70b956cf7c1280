// Prints the Kubernetes API types as a compact table: one block per struct, one line per field.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apireg "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type def struct {
	Properties map[string]map[string]any `json:"properties"`
	Required   []string                  `json:"required"`
	MapType    string                    `json:"x-kubernetes-map-type"`
	Union      any                       `json:"x-kubernetes-unions"`
}

var swagger struct {
	Definitions map[string]def `json:"definitions"`
}
var done = map[string]bool{}
var blocks = map[string]string{}

var special = map[string]string{
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                         "quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                       "intstr",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                             "time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                        "microtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":                                         "duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                         "any",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                          "raw",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "any",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "schemaorarray",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "schemaorbool",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "schemaorstrings",
}

func key(t reflect.Type) string {
	p := t.PkgPath()
	for _, pre := range []string{"k8s.io/api/", "k8s.io/apimachinery/pkg/apis/", "k8s.io/apiextensions-apiserver/pkg/apis/", "k8s.io/kube-aggregator/pkg/apis/", "k8s.io/apimachinery/pkg/"} {
		if strings.HasPrefix(p, pre) {
			p = strings.TrimPrefix(p, pre)
			break
		}
	}
	return p + "." + t.Name()
}

func swaggerName(t reflect.Type) string {
	p := t.PkgPath()
	parts := strings.Split(p, "/")
	host := strings.Split(parts[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	return strings.Join(append(host, parts[1:]...), ".") + "." + t.Name()
}

func expr(t reflect.Type) string {
	if s, ok := special[t.PkgPath()+"."+t.Name()]; ok && t.Name() != "" {
		return s
	}
	switch t.Kind() {
	case reflect.Ptr:
		return "*" + expr(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + expr(t.Elem())
	case reflect.Map:
		return "{}" + expr(t.Elem())
	case reflect.Struct:
		walk(t)
		return "@" + key(t)
	default:
		if t.PkgPath() != "" {
			return t.Kind().String() + "=" + t.String()
		}
		return t.Kind().String()
	}
}

func walk(t reflect.Type) {
	k := key(t)
	if done[k] {
		return
	}
	done[k] = true
	d := swagger.Definitions[swaggerName(t)]
	var b strings.Builder
	flags := ""
	if d.MapType != "" {
		flags += " map=" + d.MapType
	}
	fmt.Fprintf(&b, "%s%s\n", k, flags)
	fields(&b, t, d, "")
	blocks[k] = b.String()
}

// choices returns the values that a field (or the items of a list) may have. The table has no form for values with spaces.
func choices(p map[string]any) string {
	values, ok := p["enum"].([]any)
	if items, has := p["items"].(map[string]any); !ok && has {
		values, _ = items["enum"].([]any)
	}
	var texts []string
	for _, v := range values {
		texts = append(texts, fmt.Sprint(v))
	}
	if text := strings.Join(texts, ","); !strings.Contains(text, " ") {
		return text
	}
	return ""
}

// number returns the protobuf number of a field, or an empty string if it has none.
func number(f reflect.StructField) string {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

func fields(b *strings.Builder, t reflect.Type, d def, above string) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		parts := strings.Split(tag, ",")
		opts := map[string]bool{}
		for _, o := range parts[1:] {
			opts[o] = true
		}
		if parts[0] == "-" {
			continue
		}
		if parts[0] == "" && (opts["inline"] || f.Anonymous) {
			if f.Type.Name() == "TypeMeta" {
				fmt.Fprintf(b, "\tkind string ?\n\tapiVersion string ?\n")
				continue
			}
			ft := f.Type
			if ft.Kind() == reflect.Ptr {
				ft = ft.Elem()
			}
			below := above
			if n := number(f); n != "" {
				below += n + "."
			}
			fields(b, ft, d, below)
			continue
		}
		line := "\t" + parts[0] + " " + expr(f.Type)
		if n := number(f); n != "" {
			line += " #" + above + n
		}
		if opts["omitempty"] {
			line += " ?"
		}
		if opts["omitzero"] {
			line += " z"
		}
		if v := f.Tag.Get("patchStrategy"); v != "" {
			line += " patch=" + v
		}
		if v := f.Tag.Get("patchMergeKey"); v != "" {
			line += " key=" + v
		}
		if p, ok := d.Properties[parts[0]]; ok {
			if v, ok := p["x-kubernetes-list-type"].(string); ok {
				line += " list=" + v
			}
			if v, ok := p["x-kubernetes-list-map-keys"].([]any); ok {
				var ks []string
				for _, x := range v {
					ks = append(ks, x.(string))
				}
				line += " keys=" + strings.Join(ks, ",")
			}
			if v, ok := p["x-kubernetes-map-type"].(string); ok {
				line += " map=" + v
			}
			if v := choices(p); v != "" {
				line += " enum=" + v
			}
			if v, ok := p["default"]; ok {
				j, _ := json.Marshal(v)
				if string(j) != "{}" {
					line += " default=" + string(j)
				}
			}
		}
		for _, r := range d.Required {
			if r == parts[0] {
				line += " !"
			}
		}
		b.WriteString(line + "\n")
	}
}

func main() {
	raw, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(raw, &swagger); err != nil {
		panic(err)
	}
	apiext.AddToScheme(scheme.Scheme)
	apireg.AddToScheme(scheme.Scheme)
	keep := map[string]bool{}
	for _, gv := range strings.Split("v1 apps/v1 batch/v1 autoscaling/v1 autoscaling/v2 policy/v1 rbac.authorization.k8s.io/v1 networking.k8s.io/v1 discovery.k8s.io/v1 coordination.k8s.io/v1 events.k8s.io/v1 admissionregistration.k8s.io/v1 apiextensions.k8s.io/v1 apiregistration.k8s.io/v1 authentication.k8s.io/v1 authorization.k8s.io/v1 storage.k8s.io/v1 scheduling.k8s.io/v1 certificates.k8s.io/v1 node.k8s.io/v1 flowcontrol.apiserver.k8s.io/v1 resource.k8s.io/v1", " ") {
		keep[gv] = true
	}
	kinds := []string{}
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		gv := schema.GroupVersion{Group: gvk.Group, Version: gvk.Version}.String()
		if !keep[gv] || strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options") || gvk.Kind == "WatchEvent" {
			continue
		}
		walk(t)
		kinds = append(kinds, fmt.Sprintf("= %s %s %s\n", gv, gvk.Kind, key(t)))
	}
	walk(reflect.TypeOf(apiext.JSONSchemaProps{}))
	sort.Strings(kinds)
	for _, k := range kinds {
		fmt.Print(k)
	}
	names := []string{}
	for n := range blocks {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Print(blocks[n])
	}
}
