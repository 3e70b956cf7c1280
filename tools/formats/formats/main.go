// Command formats reads and writes YAML with Go's libraries, as kpt, kustomize and kubectl do.
//
//	formats read FILE…      prints one line of JSON per file and reader
//	formats fmt             formats standard input as kyaml does
//	formats source DIR      prints the files of DIR as a ResourceList, as `kpt fn source` does
//	formats sink DIR        writes the items of a ResourceList to DIR, as `kpt fn sink` does
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	yaml3 "go.yaml.in/yaml/v3"
	yaml4 "go.yaml.in/yaml/v4"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/kio/filters"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) > 1 && args[0] == "read":
		return read(args[1:])
	case len(args) == 1 && args[0] == "fmt":
		return format()
	case len(args) == 2 && args[0] == "source":
		return source(args[1])
	case len(args) == 2 && args[0] == "sink":
		return sink(args[1])
	}
	return errors.New("usage: formats read FILE… | fmt | source DIR | sink DIR")
}

// reading is the result of one reader for one file.
type reading struct {
	File      string `json:"file"`
	Reader    string `json:"reader"`
	Documents []any  `json:"documents"`
	Error     string `json:"error,omitempty"`
}

type decoder interface{ Decode(any) error }

func read(files []string) error {
	out := json.NewEncoder(os.Stdout)
	readers := map[string]func(io.Reader) decoder{
		"go-yaml-3": func(in io.Reader) decoder { return yaml3.NewDecoder(in) },
		"go-yaml-4": func(in io.Reader) decoder { return yaml4.NewDecoder(in) },
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for name, open := range readers {
			documents, err := decode(open(bytes.NewReader(text)))
			result := reading{File: file, Reader: name, Documents: documents}
			if err != nil {
				result.Error = err.Error()
			}
			if err := out.Encode(result); err != nil {
				return fmt.Errorf("%s: %s: %w", file, name, err)
			}
		}
	}
	return nil
}

func decode(in decoder) ([]any, error) {
	documents := []any{}
	for {
		var document any
		err := in.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		documents = append(documents, plain(document))
	}
}

// plain makes keys strings, which JSON requires.
func plain(value any) any {
	switch value := value.(type) {
	case map[any]any:
		object := map[string]any{}
		for key, item := range value {
			object[fmt.Sprint(key)] = plain(item)
		}
		return object
	case map[string]any:
		for key, item := range value {
			value[key] = plain(item)
		}
	case []any:
		for index, item := range value {
			value[index] = plain(item)
		}
	}
	return value
}

func format() error {
	return kio.Pipeline{
		Inputs:  []kio.Reader{&kio.ByteReader{Reader: os.Stdin, OmitReaderAnnotations: true}},
		Filters: []kio.Filter{filters.FormatFilter{}},
		Outputs: []kio.Writer{kio.ByteWriter{Writer: os.Stdout}},
	}.Execute()
}

func source(directory string) error {
	return kio.Pipeline{
		Inputs: []kio.Reader{kio.LocalPackageReader{PackagePath: directory, PreserveSeqIndent: true, WrapBareSeqNode: true}},
		Outputs: []kio.Writer{kio.ByteWriter{
			Writer: os.Stdout, KeepReaderAnnotations: true,
			WrappingKind: kio.ResourceListKind, WrappingAPIVersion: kio.ResourceListAPIVersion,
		}},
	}.Execute()
}

func sink(directory string) error {
	return kio.Pipeline{
		Inputs:  []kio.Reader{&kio.ByteReader{Reader: os.Stdin, PreserveSeqIndent: true, WrapBareSeqNode: true}},
		Outputs: []kio.Writer{kio.LocalPackageWriter{PackagePath: directory}},
	}.Execute()
}
