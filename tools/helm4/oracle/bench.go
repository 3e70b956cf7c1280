package main

import (
	"encoding/json"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
)

// timing contains the cost of each run of the engine.
type timing struct {
	// RenderNanos is the time of resolving dependencies, merging values and rendering, per run.
	RenderNanos []int64 `json:"render_nanos"`
	// RenderCPUNanos is the CPU time of all threads during RenderNanos, per run.
	RenderCPUNanos []int64 `json:"render_cpu_nanos"`
	// LoadNanos is the time of reading the chart directory, per run.
	LoadNanos []int64 `json:"load_nanos"`
	// Bytes is the total size of all rendered files, which must be equal on both sides.
	Bytes int `json:"bytes"`
}

// bench measures Helm's engine in one process, without its startup time.
func bench(asked request) ([]byte, error) {
	var result timing
	for range asked.Runs {
		begin := time.Now()
		loaded, err := loader.LoadDir(asked.Chart)
		if err != nil {
			return nil, err
		}
		result.LoadNanos = append(result.LoadNanos, time.Since(begin).Nanoseconds())
		given := map[string]any{}
		if asked.Values != "" {
			text, err := os.ReadFile(asked.Values)
			if err != nil {
				return nil, err
			}
			if err := yaml.Unmarshal(text, &given); err != nil {
				return nil, err
			}
		}
		begin, busy := time.Now(), cpuNanos()
		rendered, err := render(loaded, given)
		if err != nil {
			return nil, err
		}
		result.RenderNanos = append(result.RenderNanos, time.Since(begin).Nanoseconds())
		result.RenderCPUNanos = append(result.RenderCPUNanos, cpuNanos()-busy)
		result.Bytes = 0
		for name, text := range rendered {
			if !isNotesOfSubchart(loaded, name) {
				result.Bytes += len(text)
			}
		}
	}
	return json.Marshal(result)
}

// render does what "helm template" does between loading a chart and printing it.
func render(loaded *chart.Chart, given map[string]any) (map[string]string, error) {
	if err := chartutil.ProcessDependencies(loaded, given); err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: "istiod", Namespace: "istio-system", IsInstall: true, Revision: 1}
	values, err := util.ToRenderValues(loaded, given, release, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(loaded, values)
}

// isNotesOfSubchart reports whether a rendered file is never printed.
func isNotesOfSubchart(loaded *chart.Chart, name string) bool {
	const notes = "NOTES.txt"
	return strings.HasSuffix(name, notes) && name != path.Join(loaded.Name(), "templates", notes)
}

// cpuNanos returns the CPU time of all threads of this process so far.
func cpuNanos() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
