//! The tools of the test server, one for each kind of effect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequestParams,
    ElicitationSchema, JsonObject, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::Ledger;
use crate::clock::{Clock, SystemClock};
use crate::wire::EXECUTION_ID_META;

/// A bank that does what it is told, and writes it down.
#[derive(Clone)]
pub(super) struct Bank {
    pub(super) ledger: Ledger,
}

impl Bank {
    fn effect(&self, tool: &str, arguments: &Value, meta: &Value) {
        let execution = meta[EXECUTION_ID_META]
            .as_str()
            .and_then(|id| id.parse().ok());
        self.ledger
            .record(tool, execution, arguments.clone(), SystemClock.now());
    }
}

impl ServerHandler for Bank {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(
            TOOLS
                .iter()
                .map(|(name, says, read_only)| tool(name, says, *read_only))
                .collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let meta = serde_json::to_value(&context.meta).unwrap_or_default();
        let millis = |name: &str| Duration::from_millis(arguments[name].as_u64().unwrap_or(0));
        let text = match &*request.name {
            "pay" => {
                tokio::time::sleep(millis("before_ms")).await;
                self.effect("pay", &arguments, &meta);
                tokio::time::sleep(millis("after_ms")).await;
                format!("paid {}", arguments["amount"])
            }
            "pay_slowly" => {
                self.effect("pay_slowly", &arguments, &meta);
                for step in 1..=arguments["steps"].as_u64().unwrap_or(3).min(1000) {
                    tokio::time::sleep(millis("step_ms")).await;
                    if let Some(token) = context.meta.get_progress_token() {
                        #[expect(clippy::cast_precision_loss, reason = "at most 1000")]
                        let progress = ProgressNotificationParam::new(token, step as f64);
                        let _ = context.peer.notify_progress(progress).await;
                    }
                }
                format!("paid {} slowly", arguments["amount"])
            }
            "get_balance" => format!("the balance is {}", self.ledger.balance()),
            "set_flag" => {
                self.effect("set_flag", &arguments, &meta);
                format!("{} is {}", arguments["name"], arguments["value"])
            }
            "big_result" => {
                self.effect("big_result", &arguments, &meta);
                "x".repeat(
                    arguments["bytes"]
                        .as_u64()
                        .and_then(|bytes| bytes.try_into().ok())
                        .unwrap_or(0)
                        .min(MAX_RESULT),
                )
            }
            "ask" => {
                let question = ElicitRequestParams::FormElicitationParams {
                    meta: None,
                    message: "Really?".into(),
                    requested_schema: ElicitationSchema::new(BTreeMap::new()),
                };
                let answer = context.peer.create_elicitation(question).await;
                let answer =
                    answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                self.effect("ask", &arguments, &meta);
                format!("the client said {:?}", answer.action)
            }
            "fail" => {
                self.effect("fail", &arguments, &meta);
                return Ok(CallToolResult::error(vec![ContentBlock::text(
                    "the card was declined",
                )])
                .into());
            }
            other => {
                return Err(ErrorData::invalid_params(
                    format!("no tool is called {other}"),
                    None,
                ));
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

fn tool(name: &'static str, says: &'static str, read_only: bool) -> Tool {
    let schema: JsonObject = match json!({ "type": "object", "additionalProperties": true }) {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    let tool = Tool::new(name, says, Arc::new(schema));
    if read_only {
        tool.with_annotations(ToolAnnotations::new().read_only(true))
    } else {
        tool
    }
}

const TOOLS: [(&str, &str, bool); 7] = [
    (
        "pay",
        "Pays `amount` after `before_ms` and answers after `after_ms`",
        false,
    ),
    (
        "pay_slowly",
        "Pays `amount` and reports progress in `steps` of `step_ms`",
        false,
    ),
    ("get_balance", "Says how much was paid", true),
    ("set_flag", "Sets `name` to `value`", false),
    ("big_result", "Answers with `bytes` bytes", false),
    ("ask", "Asks the client before it acts", false),
    ("fail", "Acts, and answers with an error", false),
];
const MAX_RESULT: usize = 64 << 20;
