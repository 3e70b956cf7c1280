package main

import (
	"encoding/json"
	"os"
	"time"

	"sigs.k8s.io/yaml"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// timing contains the cost of each run of the engine.
type timing struct {
	// RenderNanos is the time of merging values and rendering, per run.
	RenderNanos []int64 `json:"render_nanos"`
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
		begin = time.Now()
		values, err := util.ToRenderValues(loaded, given, common.ReleaseOptions{Name: "istiod", Namespace: "istio-system", IsInstall: true, Revision: 1}, nil)
		if err != nil {
			return nil, err
		}
		rendered, err := engine.Render(loaded, values)
		if err != nil {
			return nil, err
		}
		result.RenderNanos = append(result.RenderNanos, time.Since(begin).Nanoseconds())
		result.Bytes = 0
		for _, text := range rendered {
			result.Bytes += len(text)
		}
	}
	return json.Marshal(result)
}
