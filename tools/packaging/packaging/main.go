// Command packaging validates the output of `cargo xtask dist` with the libraries that consume it.
//
//	packaging bundle DIR    runs operator-framework's validators on an OLM bundle
//	packaging image FILE    imports an image archive with containerd and validates it with go-containerregistry
//
// Findings go to standard output, one per line; any error exits with 1.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/containerd/platforms"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
)

// validators are those of `operator-sdk bundle validate` with its optional suite, without those that pull the image.
var validators = interfaces.Validators{
	validation.ClusterServiceVersionValidator,
	validation.CustomResourceDefinitionValidator,
	validation.BundleValidator,
	validation.OperatorHubV2Validator,
	validation.StandardCategoriesValidator,
	validation.StandardCapabilitiesValidator,
	validation.ObjectValidator,
	validation.OperatorGroupValidator,
	validation.AlphaDeprecatedAPIsValidator,
	validation.GoodPracticesValidator,
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: packaging bundle DIR | image FILE"))
	}
	var err error
	switch os.Args[1] {
	case "bundle":
		err = checkBundle(os.Args[2])
	case "image":
		err = checkImage(os.Args[2])
	default:
		err = fmt.Errorf("unknown command %q", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func checkBundle(directory string) error {
	bundle, err := manifests.GetBundleFromDir(directory)
	if err != nil {
		return err
	}
	errors, warnings := 0, 0
	for _, result := range validators.Validate(bundle.ObjectsToValidate()...) {
		for _, found := range result.Errors {
			errors++
			fmt.Println(found.Error())
		}
		for _, found := range result.Warnings {
			warnings++
			fmt.Println(found.Error())
		}
	}
	fmt.Printf("package %s, channels %s, default channel %s\n", bundle.Package, bundle.Channels, bundle.DefaultChannel)
	fmt.Printf("%d validators, %d errors, %d warnings\n", len(validators), errors, warnings)
	if errors > 0 {
		return fmt.Errorf("the bundle is invalid")
	}
	return nil
}

func checkImage(file string) error {
	if err := checkDocker(file); err != nil {
		return fmt.Errorf("docker archive: %w", err)
	}
	return checkContainerd(file)
}

// checkDocker reads a `docker load` archive and validates every digest, size and configuration in it.
func checkDocker(file string) error {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(file) })
	if err != nil {
		return err
	}
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return err
	}
	if err := validate.Image(image); err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	fmt.Printf("docker: tags %s, user %s, entrypoint %s, %d labels\n",
		manifest[0].RepoTags, config.Config.User, config.Config.Entrypoint, len(config.Config.Labels))
	return nil
}

// checkContainerd imports an archive as `ctr images import` and `kind load image-archive` do, and checks that no blob is missing.
func checkContainerd(file string) error {
	ctx := context.Background()
	directory, err := os.MkdirTemp("", "content")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	store, err := local.NewStore(directory)
	if err != nil {
		return err
	}
	reader, err := os.Open(file)
	if err != nil {
		return err
	}
	defer reader.Close()
	index, err := archive.ImportIndex(ctx, store, reader)
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	content, err := images.Children(ctx, store, index)
	if err != nil {
		return fmt.Errorf("containerd: %w", err)
	}
	for _, descriptor := range content {
		available, required, present, missing, err := images.Check(ctx, store, descriptor, platforms.All)
		if err != nil || !available || len(missing) > 0 {
			return fmt.Errorf("containerd: %d of %d blobs, %d missing: %v", len(present), len(required), len(missing), err)
		}
		fmt.Printf("containerd: image %s, %d of %d blobs\n",
			descriptor.Annotations["io.containerd.image.name"], len(present), len(required))
	}
	return nil
}
