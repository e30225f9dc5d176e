//! As much of HTTP/1.1 as it takes to find the end of a request and to send it on.

use std::io;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::io::{AsyncRead, AsyncReadExt};

/// A request as it came.
pub(super) struct Received {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Received {
    /// Whether it asks for a tool call.
    pub(super) fn is_tool_call(&self) -> bool {
        let message: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        self.method == Method::POST && message["method"] == "tools/call"
    }

    /// The same request in HTTP/1.0, so that the end of the answer is the end of the connection.
    pub(super) fn to_http10(&self) -> Vec<u8> {
        let mut out = format!("{} {} HTTP/1.0\r\n", self.method, self.path).into_bytes();
        for (name, value) in &self.headers {
            if !HOP_BY_HOP.contains(&name.as_str()) {
                out.extend_from_slice(name.as_str().as_bytes());
                out.extend_from_slice(b": ");
                out.extend_from_slice(value.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
        }
        out.extend_from_slice(format!("content-length: {}\r\n\r\n", self.body.len()).as_bytes());
        out.extend_from_slice(&self.body);
        out
    }
}

/// Reads one request. `None` when the connection ends before one begins.
///
/// # Errors
/// When it is not HTTP/1.1 as an MCP client speaks it, or larger than a test needs.
pub(super) async fn read(socket: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Received>> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            break at + 4;
        }
        if !more(socket, &mut bytes).await? {
            return if bytes.is_empty() {
                Ok(None)
            } else {
                Err(bad("it ends within its head"))
            };
        }
    };
    let head = std::str::from_utf8(&bytes[..head_end]).map_err(|_| bad("its head is not UTF-8"))?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let method = first
        .next()
        .unwrap_or_default()
        .parse()
        .map_err(|_| bad("it has no method"))?;
    let path = first
        .next()
        .ok_or_else(|| bad("it has no path"))?
        .to_owned();
    let mut headers = HeaderMap::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| bad("a header has no name"))?;
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| bad("a header's name is not one"))?;
        headers.append(
            name,
            HeaderValue::from_str(value.trim()).map_err(|_| bad("a header's value is not one"))?,
        );
    }
    let mut rest = bytes.split_off(head_end);
    let body = if headers
        .get("transfer-encoding")
        .is_some_and(|value| value == "chunked")
    {
        loop {
            if let Some(body) = unchunk(&rest)? {
                break body;
            }
            if !more(socket, &mut rest).await? {
                return Err(bad("it ends within its body"));
            }
        }
    } else {
        let length = headers
            .get("content-length")
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .unwrap_or(0);
        while rest.len() < length {
            if !more(socket, &mut rest).await? {
                return Err(bad("it ends within its body"));
            }
        }
        rest.truncate(length);
        rest
    };
    Ok(Some(Received {
        method,
        path,
        headers,
        body,
    }))
}

/// The data of a chunked body; `None` while it is not whole.
fn unchunk(mut bytes: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    loop {
        let Some(line) = memchr::memmem::find(bytes, b"\r\n") else {
            return Ok(None);
        };
        let size = std::str::from_utf8(&bytes[..line])
            .ok()
            .and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let size = size
            .filter(|size| *size <= MAX_BYTES)
            .ok_or_else(|| bad("a chunk has no size"))?;
        let Some(chunk) = bytes.get(line + 2..line + 4 + size) else {
            return Ok(None);
        };
        if size == 0 {
            return Ok(Some(body));
        }
        body.extend_from_slice(&chunk[..size]);
        bytes = &bytes[line + 4 + size..];
    }
}

async fn more(socket: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> io::Result<bool> {
    if bytes.len() > MAX_BYTES {
        return Err(bad("it is too large"));
    }
    Ok(socket.read_buf(bytes).await? > 0)
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a request: {what}"))
}

const HOP_BY_HOP: [&str; 4] = [
    "connection",
    "content-length",
    "keep-alive",
    "transfer-encoding",
];
const MAX_BYTES: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_is_read_whole_and_sent_on_in_http_1_0() {
        for text in [
            "POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 23\r\n\r\n{\"method\":\"tools/call\"}",
            "POST /mcp HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n17\r\n{\"method\":\"tools/call\"}\r\n0\r\n\r\n",
        ] {
            let request = read(&mut text.as_bytes()).await.unwrap().unwrap();
            assert!(request.is_tool_call());
            let sent = String::from_utf8(request.to_http10()).unwrap();
            assert_eq!(
                sent,
                "POST /mcp HTTP/1.0\r\nhost: x\r\ncontent-length: 23\r\n\r\n{\"method\":\"tools/call\"}"
            );
        }
        assert!(read(&mut &b""[..]).await.unwrap().is_none());
        assert!(read(&mut &b"POST /mcp"[..]).await.is_err());
    }
}
