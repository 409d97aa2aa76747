//! Test files in the one layout: what stands on a line stays on it, indented by the brackets around it, with one
//! blank around `=` and behind a comma; tables are set off by a blank line.

use dogwood_grammar::Span;
use dogwood_grammar::diagnostic::Edit;
use toml::Table;
use toml_parser::Source;
use toml_parser::lexer::TokenKind;

/// Edits that lay out a text in TOML, line by line and in order. Nothing where it is no TOML.
pub fn edits(text: &str) -> Option<Vec<Edit>> {
    let before: Table = text.parse().ok()?;
    let lines = lines(text);
    let laid: String = lines.iter().map(|line| line.laid.as_str()).collect();
    // Whatever may be wrong with the layout, it never changes what a file says.
    let same = laid.parse::<Table>().is_ok_and(|after| after == before);
    if !same || comments(&laid) != comments(text) {
        return Some(Vec::new());
    }
    let changed = lines
        .into_iter()
        .filter(|line| line.span.text(text) != line.laid);
    Some(
        changed
            .map(|line| Edit {
                span: line.span,
                text: line.laid,
            })
            .collect(),
    )
}

/// A line of the text with its end, or the lines of a long string, and what becomes of it.
struct Line {
    span: Span,
    laid: String,
    blank: bool,
}

struct Piece<'t> {
    kind: TokenKind,
    text: &'t str,
}

fn pieces(text: &str) -> impl Iterator<Item = (Span, Piece<'_>)> {
    let tokens = Source::new(text).lex();
    tokens.filter_map(move |token| {
        let span = Span::new(token.span().start(), token.span().end());
        let kind = token.kind();
        (kind != TokenKind::Eof).then(|| {
            let text = span.text(text);
            (span, Piece { kind, text })
        })
    })
}

fn comments(text: &str) -> Vec<&str> {
    pieces(text)
        .filter(|(_, piece)| piece.kind == TokenKind::Comment)
        .map(|(_, piece)| piece.text.trim_end())
        .collect()
}

fn lines(text: &str) -> Vec<Line> {
    let mut all = Vec::new();
    let mut depth = 0;
    let mut last = Last::Nothing;
    let mut open: Vec<Piece> = Vec::new();
    let mut span: Option<Span> = None;
    for (at, piece) in pieces(text) {
        let whole = span.map_or(at, |span| span.to(at));
        span = Some(whole);
        match piece.kind {
            TokenKind::Whitespace => {}
            TokenKind::Newline => {
                all.push(line(whole, &open, &mut depth, &mut last));
                open.clear();
                span = None;
            }
            _ => open.push(piece),
        }
    }
    // The last line may have no end.
    if let Some(rest) = span {
        all.push(line(rest, &open, &mut depth, &mut last));
    }
    for line in all.iter_mut().rev().take_while(|line| line.blank) {
        line.laid.clear();
    }
    all
}

/// What stands above a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Blank,
    Comment,
    Content,
}

fn line(span: Span, pieces: &[Piece], depth: &mut usize, last: &mut Last) -> Line {
    let mut laid = String::new();
    let Some(first) = pieces.first() else {
        // One blank line at most, and none at the start.
        if !matches!(last, Last::Nothing | Last::Blank) {
            laid.push('\n');
            *last = Last::Blank;
        }
        return Line {
            span,
            laid,
            blank: true,
        };
    };
    let table = *depth == 0 && first.kind == TokenKind::LeftSquareBracket;
    if table && *last == Last::Content {
        laid.push('\n');
    }
    let closed = pieces.iter().take_while(|piece| closes(piece.kind)).count();
    laid.push_str(&"  ".repeat(depth.saturating_sub(closed)));
    let mut before: Option<&Piece> = None;
    for piece in pieces {
        if before.is_some_and(|before| apart(before.kind, piece.kind, table)) {
            laid.push(' ');
        }
        laid.push_str(match piece.kind {
            TokenKind::Comment => piece.text.trim_end(),
            _ => piece.text,
        });
        before = Some(piece);
        match piece.kind {
            _ if table => {}
            TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => *depth += 1,
            kind if closes(kind) => *depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    laid.push('\n');
    *last = match first.kind {
        TokenKind::Comment => Last::Comment,
        _ => Last::Content,
    };
    Line {
        span,
        laid,
        blank: false,
    }
}

fn closes(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket
    )
}

/// Whether a blank stands between two tokens of a line.
fn apart(left: TokenKind, right: TokenKind, table: bool) -> bool {
    use TokenKind::{
        Comma, Comment, Dot, LeftCurlyBracket, LeftSquareBracket, RightCurlyBracket,
        RightSquareBracket,
    };
    match (left, right) {
        (_, Comment) => true,
        _ if table => false,
        (_, Comma) | (Dot, _) | (_, Dot) => false,
        (LeftSquareBracket, _) | (_, RightSquareBracket) => false,
        (LeftCurlyBracket, RightCurlyBracket) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn laid(text: &str) -> Option<String> {
        let mut out = text.to_owned();
        for edit in edits(text)?.iter().rev() {
            out.replace_range(edit.span.range(), &edit.text);
        }
        Some(out)
    }

    #[test]
    fn a_test_file() {
        let text = "\n\n# Pushes.\npolicy=\"push.dw\"   # beside\n[ defaults.input ]\nn=1. \n5\n";
        assert_eq!(laid(text), None);
        let text = "\n\n# Pushes.\npolicy=\"push.dw\"   # beside\n[ defaults.input ]\nn=-1.5\n\n\n\n[[test]]\n  name = 'a  b'\nevents=[\n{request=\"shell:exec\",input={command=\"git push\" , words=[ 1,2 ]},at=\"+5m\"},#x\n    # y\n{ response = \"\"\"\n  two\n lines\"\"\", input={ } }\n  ]\n# The last.\n[[test]]\nwhen=2026-11-29 10:00:00\n\n";
        insta::assert_snapshot!(laid(text).unwrap_or_default(), @r#"
        # Pushes.
        policy = "push.dw" # beside

        [defaults.input]
        n = -1.5

        [[test]]
        name = 'a  b'
        events = [
          { request = "shell:exec", input = { command = "git push", words = [1, 2] }, at = "+5m" }, #x
          # y
          { response = """
          two
         lines""", input = {} }
        ]
        # The last.
        [[test]]
        when = 2026-11-29 10:00:00
        "#);
    }

    fn value() -> impl Strategy<Value = String> {
        let leaf = prop::sample::select(vec![
            "1",
            "-2.5",
            "\"a # b\"",
            "'c=,'",
            "true",
            "\"\"\"\n x\n\"\"\"",
            "07:32:00",
            "inf",
        ])
        .prop_map(str::to_owned);
        leaf.prop_recursive(3, 12, 3, |inner| {
            let gap = prop::sample::select(vec!["", " ", "  ", "\n", " # note\n\n"]);
            prop_oneof![
                (prop::collection::vec(inner.clone(), 0..3), gap).prop_map(|(all, gap)| format!(
                    "[{gap}{}{gap}]",
                    all.join(&format!("{gap},{gap}"))
                )),
                prop::collection::vec(inner, 0..3).prop_map(|all| {
                    let fields = all.iter().enumerate();
                    let fields: Vec<String> =
                        fields.map(|(n, value)| format!("k{n} ={value}")).collect();
                    format!("{{{}}}", fields.join(" ,"))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn layout_keeps_what_a_file_says(
            values in prop::collection::vec((value(), prop::sample::select(vec![
                "", "[[test]]\n", "# about\n [[ test ]] # t\n", "\n\n\n", "   \t\n"
            ])), 0..6)
        ) {
            let text: String = values
                .iter()
                .enumerate()
                .map(|(n, (value, before))| format!("{before}key{n}.x= {value}  \n"))
                .collect();
            let Ok(table) = text.parse::<Table>() else {
                return Ok(());
            };
            let once = laid(&text).expect("it is TOML");
            prop_assert_eq!(once.parse::<Table>().ok(), Some(table), "{}", once);
            prop_assert_eq!(comments(&once), comments(&text));
            prop_assert_eq!(laid(&once), Some(once.clone()), "{}", text);
        }
    }
}
