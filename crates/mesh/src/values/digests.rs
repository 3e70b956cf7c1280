//! Sets images by digest from the operator's configuration, unless the user sets an image.

use mainstay_api::{Values, values};

use super::merge::{map_at, set_if_unset};
use crate::Images;

/// Keys of a component with which a user sets another image.
const IMAGE_KEYS: [&str; 3] = ["image", "hub", "tag"];

/// Sets the images of a control plane: istiod, proxy and proxy init.
pub(super) fn apply_istio(user: &mut Values, images: Option<&Images>) {
    let Some(images) = images.filter(|_| !chooses_registry(user)) else {
        return;
    };
    set_image(user, "pilot", &images.istiod);
    for proxy in ["proxy", "proxy_init"] {
        if let Some(map) = map_at(user, &["global", proxy]) {
            set_if_unset(map, "image", images.proxy.as_str().into());
        }
    }
}

/// Sets the image of `IstioCNI`.
pub(super) fn apply_cni(user: &mut Values, images: Option<&Images>) {
    if let Some(images) = images.filter(|_| !chooses_registry(user)) {
        set_image(user, "cni", &images.cni);
    }
}

/// Sets the image of `ZTunnel`.
pub(super) fn apply_ztunnel(user: &mut Values, images: Option<&Images>) {
    if let Some(images) = images.filter(|_| !chooses_registry(user)) {
        set_image(user, "ztunnel", &images.ztunnel);
    }
}

/// Whether the user sets a global registry or tag. Configured digests do not apply in this case.
fn chooses_registry(user: &Values) -> bool {
    ["hub", "tag"]
        .iter()
        .any(|key| values::at(user, &["global", key]).is_some())
}

fn set_image(user: &mut Values, component: &str, image: &str) {
    let chosen = IMAGE_KEYS
        .iter()
        .any(|key| values::at(user, &[component, key]).is_some());
    if let Some(map) = map_at(user, &[component])
        && !chosen
    {
        map.insert("image".into(), image.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::testing::{map, to_json};

    fn images() -> Images {
        Images {
            istiod: "istiod-test".into(),
            proxy: "proxy-test".into(),
            cni: "cni-test".into(),
            ztunnel: "ztunnel-test".into(),
        }
    }

    fn check(apply: fn(&mut Values, Option<&Images>), name: &str, known: bool, user: &str, expected: &str) {
        let (mut values, images) = (map(user), images());
        apply(&mut values, known.then_some(&images));
        assert_eq!(to_json(&values), expected, "{name}");
    }

    #[test]
    fn a_control_plane_gets_its_images() {
        const PROXIES: &str =
            r#""global":{"proxy":{"image":"proxy-test"},"proxy_init":{"image":"proxy-test"}}"#;
        let case =
            |name, known, user: &str, expected: String| check(apply_istio, name, known, user, &expected);
        let own = r#"{"pilot":{"image":"istiod-custom"}}"#;
        case("no-config", false, own, own.into());
        case(
            "no-user-values",
            true,
            "{}",
            format!(r#"{{{PROXIES},"pilot":{{"image":"istiod-test"}}}}"#),
        );
        case(
            "user-supplied-image",
            true,
            own,
            format!(r#"{{{PROXIES},"pilot":{{"image":"istiod-custom"}}}}"#),
        );
        let hub = r#""pilot":{"hub":"docker.io/istio","tag":"1.20.1"}"#;
        case(
            "user-supplied-hub-tag",
            true,
            &format!("{{{hub}}}"),
            format!("{{{PROXIES},{hub}}}"),
        );
        case(
            "version-without-defaults",
            false,
            &format!("{{{hub}}}"),
            format!("{{{hub}}}"),
        );
        let global = r#"{"global":{"hub":"docker.io/istio"}}"#;
        case("user-supplied-global-hub", true, global, global.into());
        let global = r#"{"global":{"tag":"v1.20.0-custom-build"}}"#;
        case("user-supplied-global-tag", true, global, global.into());
    }

    #[test]
    fn the_plug_in_gets_its_image() {
        let case = |name, known, user, expected| check(apply_cni, name, known, user, expected);
        case("no digests defined", false, "{}", "{}");
        case(
            "applies digest when values is nil",
            true,
            "{}",
            r#"{"cni":{"image":"cni-test"}}"#,
        );
        let own = r#"{"cni":{"image":"cni-custom"}}"#;
        case("user-supplied-image", true, own, own);
        let own = r#"{"cni":{"hub":"docker.io/istio","tag":"1.20.1"}}"#;
        case("user-supplied-hub-tag", true, own, own);
        case("version-without-defaults", false, own, own);
        let own = r#"{"global":{"hub":"docker.io/istio"}}"#;
        case("user-supplied-global-hub", true, own, own);
        let own = r#"{"global":{"tag":"1.20.1"}}"#;
        case("user-supplied-global-tag", true, own, own);
    }

    #[test]
    fn the_node_proxy_gets_its_image() {
        let case = |name, known, user, expected| check(apply_ztunnel, name, known, user, expected);
        case("no digests defined", false, "{}", "{}");
        case(
            "applies digest when values is nil",
            true,
            "{}",
            r#"{"ztunnel":{"image":"ztunnel-test"}}"#,
        );
        let own = r#"{"ztunnel":{"image":"custom"}}"#;
        case("user-supplied-image", true, own, own);
        let own = r#"{"ztunnel":{"hub":"docker.io/istio","tag":"1.20.1"}}"#;
        case("user-supplied-hub-tag", true, own, own);
        let own = r#"{"global":{"hub":"docker.io/istio"}}"#;
        case("user-supplied-global-hub", true, own, own);
    }
}
