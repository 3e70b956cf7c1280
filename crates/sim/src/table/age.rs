//! Formats an age as `kubectl` does (`5m`, `3h12m`, `2d`).

use crate::clock::Instant;

/// Formats the time from `then` (RFC 3339) to `now`. Returns `<unknown>` if `then` is not a time.
#[must_use]
pub fn age(then: &str, now: Instant) -> String {
    match Instant::parse(then) {
        Some(then) => format_duration(now.as_seconds() - then.as_seconds()),
        None => "<unknown>".into(),
    }
}

/// Formats a duration with at most two units. Long durations have one unit.
pub(super) fn format_duration(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let pair = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{big}{unit}")
        } else {
            format!("{big}{unit}{small}{small_unit}")
        }
    };
    match seconds {
        ..-1 => "<invalid>".into(),
        -1..0 => "0s".into(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => pair(days, "d", hours % 24, "h"),
        _ if days < 365 * 2 => format!("{days}d"),
        _ if days < 365 * 8 => pair(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_durations_have_fewer_units() {
        let cases = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_000, "3h3m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (700_000, "8d"),
            (-1, "0s"),
            (-2, "<invalid>"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(format_duration(seconds), expected, "{seconds}");
        }
    }
}
