//! Lines and columns of a text, as editors count them.

/// What a column counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    /// What every editor knows.
    #[default]
    Utf16,
}

/// Line and column from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    pub line: u32,
    pub column: u32,
}

/// Where the lines of a text begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub fn of(text: &str) -> Lines {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Lines {
            starts: std::iter::once(0)
                .chain(breaks.map(|(at, _)| at + 1))
                .collect(),
        }
    }

    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// The line a byte is on.
    pub fn line(&self, offset: usize) -> usize {
        self.starts
            .partition_point(|start| *start <= offset)
            .saturating_sub(1)
    }

    /// Where a line begins; the end of the text for lines it does not have.
    pub fn start(&self, text: &str, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(text.len())
    }

    /// A line without its line break.
    pub fn text<'t>(&self, text: &'t str, line: usize) -> &'t str {
        let end = self.start(text, line + 1);
        let whole = text.get(self.start(text, line)..end).unwrap_or("");
        whole.trim_end_matches(['\n', '\r'])
    }

    pub fn point(&self, text: &str, offset: usize, encoding: Encoding) -> Point {
        let offset = text.floor_char_boundary(offset);
        let line = self.line(offset);
        let before = text.get(self.start(text, line)..offset).unwrap_or("");
        let column = match encoding {
            Encoding::Utf8 => before.len(),
            Encoding::Utf16 => before.chars().map(char::len_utf16).sum(),
        };
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Point {
            line: clamp(line),
            column: clamp(column),
        }
    }

    /// The byte at a point; the nearest one before it where the text has no such point.
    pub fn offset(&self, text: &str, point: Point, encoding: Encoding) -> usize {
        let line = usize::try_from(point.line).unwrap_or(usize::MAX);
        if line >= self.starts.len() {
            return text.len();
        }
        let start = self.start(text, line);
        let content = self.text(text, line);
        let column = usize::try_from(point.column).unwrap_or(usize::MAX);
        match encoding {
            Encoding::Utf8 => start + content.floor_char_boundary(column.min(content.len())),
            Encoding::Utf16 => {
                let mut units = 0;
                for (at, c) in content.char_indices() {
                    units += c.len_utf16();
                    if units > column {
                        return start + at;
                    }
                }
                start + content.len()
            }
        }
    }

    /// The lines after `range` of the text was replaced by `new`; `text` is what came of it.
    #[must_use]
    pub fn edited(&self, range: std::ops::Range<usize>, new: &str) -> Lines {
        let from = self.starts.partition_point(|start| *start <= range.start);
        let to = self.starts.partition_point(|start| *start <= range.end);
        let removed = range.end - range.start;
        let breaks = new.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let mut starts = self.starts.get(..from).unwrap_or_default().to_vec();
        starts.extend(breaks.map(|(at, _)| range.start + at + 1));
        let behind = self.starts.get(to..).unwrap_or_default();
        starts.extend(behind.iter().map(|start| start - removed + new.len()));
        Lines { starts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_count_bytes_or_halves() {
        let text = "é𝄞x\nb";
        let lines = Lines::of(text);
        let at = text.find('x').unwrap();
        let point = |encoding| lines.point(text, at, encoding);
        assert_eq!(point(Encoding::Utf8), Point { line: 0, column: 6 });
        assert_eq!(point(Encoding::Utf16), Point { line: 0, column: 3 });
    }

    #[test]
    fn a_point_inside_a_character_is_before_it() {
        let text = "é𝄞x";
        let lines = Lines::of(text);
        for (encoding, column, offset) in [
            (Encoding::Utf8, 1, 0),
            (Encoding::Utf8, 3, 2),
            (Encoding::Utf16, 2, 2),
            (Encoding::Utf16, 99, 7),
        ] {
            let point = Point { line: 0, column };
            assert_eq!(lines.offset(text, point, encoding), offset);
        }
    }

    proptest! {
        #[test]
        fn points_and_offsets_agree(text in "[a\né𝄞\r ]{0,30}", at in 0usize..60) {
            let lines = Lines::of(&text);
            let at = text.floor_char_boundary(at);
            for encoding in [Encoding::Utf8, Encoding::Utf16] {
                let point = lines.point(&text, at, encoding);
                let back = lines.offset(&text, point, encoding);
                // Only a carriage return at the end of a line has no place of its own.
                prop_assert!(back == at || text[back..at].chars().all(|c| c == '\r'));
            }
        }

        #[test]
        fn edited_lines_are_those_of_the_edited_text(
            text in "[ab\n]{0,20}", new in "[ab\n]{0,8}", a in 0usize..20, b in 0usize..20,
        ) {
            let (a, b) = (a.min(text.len()), b.min(text.len()));
            let range = a.min(b)..a.max(b);
            let mut edited = text.clone();
            edited.replace_range(range.clone(), &new);
            prop_assert_eq!(Lines::of(&text).edited(range, &new), Lines::of(&edited));
        }
    }
}
