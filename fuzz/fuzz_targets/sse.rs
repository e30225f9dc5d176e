//! Any cut of any bytes gives the same blocks, within the limit.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use reattach::wire::Framer;

type Seen = Vec<(
    Option<Option<String>>,
    Option<u128>,
    String,
    Option<Vec<u8>>,
)>;

fn blocks(chunks: &[&[u8]]) -> Option<Seen> {
    let mut framer = Framer::new(1 << 16);
    let mut seen = Vec::new();
    for chunk in chunks {
        framer.push(Bytes::copy_from_slice(chunk));
        while let Some(block) = framer.next_block().ok()? {
            let event = block.event();
            let id = event.id.map(|id| id.map(|id| id.as_str().to_owned()));
            let fields = (
                id,
                event.retry.map(|retry| retry.as_millis()),
                event.kind.into_owned(),
                event.data.map(|data| data.into_owned()),
            );
            if fields != (None, None, String::new(), None) {
                seen.push(fields);
            }
        }
    }
    Some(seen)
}

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (bytes, cuts) = input;
    let mut at: Vec<usize> = cuts
        .iter()
        .map(|cut| usize::from(*cut) * bytes.len() / 255)
        .collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    let chunks: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
    if let (Some(whole), Some(cut)) = (blocks(&[&bytes]), blocks(&chunks)) {
        assert_eq!(whole, cut);
    }
});
