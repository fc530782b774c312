// The types of the API, made from its OpenAPI document by make embed.
// 3dfefdc52ab744157c4bd8357073a6b00deebb0d2f76252d4bdca63fc4a56169

export interface paths {
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Alive */
        get: operations["healthz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/images/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A picture that was uploaded, always the same under its address */
        get: operations["show_image"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Figures for Prometheus
         * @description Needs the role `viewer`.
         */
        get: operations["metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Ready to sell */
        get: operations["readyz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/alarms": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Alarms that were raised, newest first
         * @description Needs the role `viewer`.
         */
        get: operations["list_alarms"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Does everything add up? The invariants now, with the ids of what breaks one
         * @description Needs the role `viewer`.
         */
        get: operations["show_audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/buyers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Buyers who are blocked, by name
         * @description Needs the role `viewer`.
         */
        get: operations["list_buyers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/buyers/block": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let a buyer buy, pay and queue no more; takes them out of every line
         * @description Needs the role `operator`.
         */
        post: operations["block_buyer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/buyers/end-tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End a buyer's tokens that were issued before a moment
         * @description Needs the role `operator`.
         */
        post: operations["end_tokens_of_buyer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/buyers/erase": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Put a pseudonym in a buyer's place, everywhere and for good; 409 while something of theirs may move
         * @description Needs the role `admin`.
         */
        post: operations["erase_buyer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/buyers/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Everything that is held about one buyer
         * @description Needs the role `operator`.
         */
        post: operations["export_buyer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/buyers/unblock": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let a buyer buy again
         * @description Needs the role `operator`.
         */
        post: operations["unblock_buyer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/dead": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Dead letters, newest first
         * @description Needs the role `viewer`.
         */
        get: operations["list_dead"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/dead/{letter_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One dead letter with its history
         * @description Needs the role `viewer`.
         */
        get: operations["show_dead"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/dead/{letter_id}/discard": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Put it away: nothing more is to be done
         * @description Needs the role `operator`.
         */
        post: operations["discard_dead"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/dead/{letter_id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Try once more to write it
         * @description Needs the role `operator`.
         */
        post: operations["replay_dead"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/entries/{entry_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove an entry from its line, for a reason that stays on record
         * @description Needs the role `operator`.
         */
        delete: operations["remove_entry"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Every committed change of sales, rounds, orders and money, once each, in the order of the commits
         * @description Needs the role `viewer`.
         */
        get: operations["list_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/images": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Upload a picture for a sale: JPEG, PNG or WebP, at most 10 MiB and 40 million pixels
         * @description Needs the role `operator`.
         */
        post: operations["upload_image"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Figures of the sales that are on, and every process, as they are now
         * @description Needs the role `viewer`.
         */
        get: operations["live"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whose key this is, and which role it has
         * @description Needs the role `viewer`.
         */
        get: operations["show_me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/operators": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All keys of operators, newest first
         * @description Needs the role `admin`.
         */
        get: operations["list_operator_keys"];
        put?: never;
        /**
         * Make a key for an operator; the answer has it, this once
         * @description Needs the role `admin`.
         */
        post: operations["create_operator_key"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/operators/{key_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke a key: within seconds it opens nothing any more, on every node
         * @description Needs the role `admin`.
         */
        delete: operations["revoke_operator_key"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/orders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Orders with every event, newest first
         * @description Needs the role `viewer`.
         */
        get: operations["find_orders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/orders.csv": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All orders that fit, newest first, streamed as CSV
         * @description Needs the role `viewer`.
         */
        get: operations["export_csv"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/orders.jsonl": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All orders that fit, newest first, streamed as JSON, an order on each line
         * @description Needs the role `viewer`.
         */
        get: operations["export_jsonl"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/orders/{order_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel an unpaid order; its units are on sale again within a second
         * @description Needs the role `operator`.
         */
        post: operations["cancel_any_order"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/orders/{order_id}/refund": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Refund a paid order, in full or in part, with its units back on sale or not
         * @description Needs the role `operator`.
         */
        post: operations["refund_order"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How all sales stand that are on or to come, and the last 100 that are over; and the alarms that last
         * @description Needs the role `viewer`.
         */
        get: operations["show_overview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/record": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who has changed what, newest first
         * @description Needs the role `viewer`.
         */
        get: operations["show_record"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/refunds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Refunds: those still to be made, then the newest
         * @description Needs the role `viewer`.
         */
        get: operations["list_refunds"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/refunds/{refund_id}/done": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Note that a refund was made by hand
         * @description Needs the role `operator`.
         */
        post: operations["finish_refund"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/repair": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * What the audit finds and what would mend it; does it with `apply`
         * @description Needs the role `admin`.
         */
        post: operations["repair"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/sales/{sale_id}/audience": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Replace the list of buyers whom a sale is for, one on each line, as CSV or as JSON lines
         * @description Needs the role `operator`.
         */
        put: operations["replace_audience"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/sales/{sale_id}/duplicate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make a draft of a sale: its goods, rules and items, and not its orders, codes or list of buyers
         * @description Needs the role `operator`.
         */
        post: operations["duplicate_sale"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/sales/{sale_id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How a sale stood, step by step: what its charts are drawn from
         * @description Needs the role `viewer`.
         */
        get: operations["show_history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/sales/{sale_id}/history.csv": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The same for a spreadsheet
         * @description Needs the role `viewer`.
         */
        get: operations["export_history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/sales/{sale_id}/line": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The line of a sale, with who is in it, by place, or before the draw by entry
         * @description Needs the role `viewer`.
         */
        get: operations["show_line_to_operator"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Pause serving, change its pace, give the beacon of the draw
         * @description Needs the role `operator`.
         */
        patch: operations["change_line"];
        trace?: never;
    };
    "/v1/admin/sales/{sale_id}/summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What came of a round: money, conversion, sell-through
         * @description Needs the role `viewer`.
         */
        get: operations["show_summary"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/sales/{sale_id}/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What happened to a sale, newest first: starts, sell-outs, returns, changes and by whom, alarms
         * @description Needs the role `viewer`.
         */
        get: operations["show_timeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/sales/{sale_id}/vouchers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How many codes a sale has, and how many it lacks
         * @description Needs the role `viewer`.
         */
        get: operations["count_vouchers"];
        put?: never;
        /**
         * Upload codes, one on each line: all of them or none
         * @description Needs the role `operator`.
         */
        post: operations["upload_vouchers"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/system": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What everything runs on: the servers, asked now, and the settings, without their secrets
         * @description Needs the role `viewer`.
         */
        get: operations["show_system"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/tokens/end": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End all buyers' tokens that were issued before a moment
         * @description Needs the role `admin`.
         */
        post: operations["end_all_tokens"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/vouchers/{code}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who has a code, and what has become of it
         * @description Needs the role `viewer`.
         */
        get: operations["show_voucher"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/vouchers/{code}/redeem": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Redeem a code, once
         * @description Needs the role `operator`.
         */
        post: operations["redeem_voucher"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All webhooks, and how each is doing
         * @description Needs the role `viewer`.
         */
        get: operations["list_webhooks"];
        put?: never;
        /**
         * Send events to an address from now on; the answer has the secret, this once
         * @description Needs the role `admin`.
         */
        post: operations["create_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/webhooks/{webhook_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One webhook
         * @description Needs the role `viewer`.
         */
        get: operations["show_webhook"];
        put?: never;
        post?: never;
        /**
         * Send nothing to it any more, and forget its deliveries
         * @description Needs the role `admin`.
         */
        delete: operations["delete_webhook"];
        options?: never;
        head?: never;
        /**
         * Change where it goes and which events it gets; enable or disable it
         * @description Needs the role `admin`.
         */
        patch: operations["change_webhook"];
        trace?: never;
    };
    "/v1/admin/webhooks/{webhook_id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Deliveries that wait or were given up, and the last 100 that were made, newest first
         * @description Needs the role `viewer`.
         */
        get: operations["list_deliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send it again, now; one that waits behind another of the same order keeps its place
         * @description Needs the role `admin`.
         */
        post: operations["redeliver"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/webhooks/{webhook_id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give it a new secret, shown this once; both sign while they overlap
         * @description Needs the role `admin`.
         */
        post: operations["rotate_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/webhooks/{webhook_id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a `webhook.test` to it, also if it is disabled
         * @description Needs the role `admin`.
         */
        post: operations["test_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/admin/windows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * The next five windows of a sale that would repeat like this
         * @description Needs the role `viewer`.
         */
        post: operations["show_windows"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/entries/{entry_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One entry of the buyer */
        get: operations["show_entry"];
        put?: never;
        post?: never;
        /** Leave the line */
        delete: operations["leave_line"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/entries/{entry_id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The entry now and at each change, as server-sent events */
        get: operations["entry_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/line-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The keys that receipts of entries are signed with, as a JSON Web Key Set */
        get: operations["show_keys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The buyer's orders, newest first */
        get: operations["list_orders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orders/{order_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One order of the buyer */
        get: operations["show_order"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orders/{order_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancel; the unit is on sale again within a second */
        post: operations["cancel_order"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orders/{order_id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One order of the buyer, now and at each change, as server-sent events */
        get: operations["order_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/orders/{order_id}/pay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pay: done at once in the sandbox; or `pay_url`, where the payment provider takes the money */
        post: operations["pay_order"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/payments/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Money was taken for an order; send the same again until it is answered with 2xx or 4xx */
        post: operations["payment_callback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All sales that are on or to come, and the last 100 that are over */
        get: operations["list_sales"];
        put?: never;
        /**
         * Announce a sale
         * @description Needs the role `operator`.
         */
        post: operations["create_sale"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{sale_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One sale */
        get: operations["show_sale"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Add units, move the window, change title, limit or what is shown, publish or hide
         * @description Needs the role `operator`.
         */
        patch: operations["change_sale"];
        trace?: never;
    };
    "/v1/sales/{sale_id}/close": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End the sale for good, and its repetition
         * @description Needs the role `operator`.
         */
        post: operations["close_sale"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{sale_id}/custody": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Where every unit is
         * @description Needs the role `viewer`.
         */
        get: operations["custody"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{sale_id}/draw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The draw of a sale, with all that is needed to check it */
        get: operations["show_draw"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{sale_id}/draw/entries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The entries of a draw in the order of their places */
        get: operations["list_draw"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{sale_id}/entries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The buyer's own entry in the line of a sale, for those who do not know its id */
        get: operations["list_own"];
        put?: never;
        /** Join the line of a sale; once for each buyer and round */
        post: operations["join_line"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{sale_id}/line": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How far the line of a sale has come */
        get: operations["show_line"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{sale_id}/orders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Buy: queues an order, or says why not; 201 with the order where the answer waited for the ledger */
        post: operations["create_order"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{sale_id}/pass": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A challenge; with what it asks for, a pass, which claims of this sale then carry */
        post: operations["ask_for_pass"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{sale_id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stop selling for now
         * @description Needs the role `operator`.
         */
        post: operations["pause_sale"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{sale_id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sell on
         * @description Needs the role `operator`.
         */
        post: operations["resume_sale"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{sale_id}/rounds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The rounds of a sale, the newest first, at most 50
         * @description Needs the role `viewer`.
         */
        get: operations["list_rounds"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sales/{sale_id}/story": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How a round went, when it is sold out or over */
        get: operations["show_story"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/time": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The time, by the clock that opens and closes sales */
        get: operations["server_time"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/version": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Version */
        get: operations["version"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** AlarmView */
        AlarmView: {
            facts: Record<string, never>;
            id: string;
            on: boolean;
            raised_at: string;
            resolved_at: string | null;
            /** @default null */
            runbook: string | null;
            sale_id: string | null;
            times: number;
            told_at: string;
            what: string;
        };
        /** Alarms */
        Alarms: {
            alarms: components["schemas"]["AlarmView"][];
        };
        /**
         * Answers
         * @description How long claims took to be answered lately, over all API processes.
         */
        Answers: {
            claims: number;
            p50_ms: number | null;
            p99_ms: number | null;
            within_s: number;
        };
        /**
         * Audience
         * @description Who is in one of the groups or on the list may buy, and who is in a group of `early` so much earlier. Without
         *         groups and list, everybody may.
         */
        Audience: {
            /** @default [] */
            early: components["schemas"]["EarlyAccess"][];
            /** @default [] */
            groups: string[];
            /** @default false */
            list: boolean;
        };
        /** AudienceReplaced */
        AudienceReplaced: {
            buyers: number;
            repeated: number;
        };
        /** Audit */
        Audit: {
            at: string;
            invariants: components["schemas"]["AuditResult"][];
            orders_compared_at: string | null;
            took_ms: number;
            units: components["schemas"]["AuditUnits"][];
            verdict: string;
        };
        /**
         * AuditFinding
         * @description One thing that is wrong.
         */
        AuditFinding: {
            buyer: string | null;
            kind: string;
            order_id: string | null;
            order_number: string | null;
            round: string | null;
            sale_id: string | null;
            says: string;
            user: string | null;
        };
        /**
         * AuditResult
         * @description One invariant: `holds`, `broken` or `unknown` (could not tell, for these reasons).
         */
        AuditResult: {
            checked: string;
            findings: components["schemas"]["AuditFinding"][];
            found: number;
            name: string;
            reasons: string[];
            says: string;
            verdict: string;
        };
        /**
         * AuditUnits
         * @description Where the units of a round are.
         */
        AuditUnits: {
            available: number;
            live: number;
            queued: number;
            returning: number;
            round: string;
            sale_id: string;
            total: number;
        };
        /**
         * BeaconOrigin
         * @description Announced before anybody can join. The draw takes the first value that is published more than 15 seconds after
         *         `listed_at`: value n is published at `genesis_s` + (n - 1) · `period_s`, in Unix time.
         */
        BeaconOrigin: {
            genesis_s: number;
            period_s: number;
            url: string;
            within_s: number;
        };
        /**
         * BuyerFile
         * @description Everything that is held about a buyer. Times are RFC 3339, amounts in minor units.
         */
        BuyerFile: {
            buyer: string;
            entries: Record<string, never>[];
            lists: string[];
            made_at: string;
            orders: Record<string, never>[];
            queued: Record<string, never>[];
            set_aside: Record<string, never>[];
        };
        /** BuyerStanding */
        BuyerStanding: {
            blocked: boolean;
            blocked_at: string | null;
            blocked_by: string | null;
            buyer: string;
            reason: string | null;
            tokens_ended_before: string | null;
        };
        /** BuyerStandings */
        BuyerStandings: {
            buyers: components["schemas"]["BuyerStanding"][];
            /** @default null */
            next: string | null;
        };
        /** BuyerWish */
        BuyerWish: {
            /** @description The `sub` of the buyer's tokens. */
            buyer: string;
            /** @description In a line; it stays on the record. */
            reason: string;
        };
        /**
         * Conversion
         * @description What the engine knows of the way from looking to paying. Pages are cached and seen without it, so nobody counts
         *         who looked.
         */
        Conversion: {
            orders: number;
            orders_per_press: number | null;
            paid_orders: number;
            paid_per_order: number | null;
            presses: number;
            refused: {
                [key: string]: number;
            };
            viewers: number | null;
        };
        /** Custody */
        Custody: {
            available: number;
            dead: number;
            items?: components["schemas"]["ItemCustody"][];
            kept: number;
            lapsed: number;
            next_return_at: string | null;
            orders: number;
            paid: number;
            queued: number;
            returning: number;
            round: string;
            sold: number;
            total: number;
            unpaid: number;
        };
        /** DeadLetter */
        DeadLetter: {
            attempts: number;
            created_at: string;
            history: {
                [key: string]: string;
            }[];
            id: string;
            order_id: string | null;
            payload: string;
            reason: string;
            state: string;
        };
        /** DeadLetters */
        DeadLetters: {
            dead: components["schemas"]["DeadLetter"][];
        };
        /**
         * Draw
         * @description With `/draw/entries`, all that is needed to make the draw again.
         */
        Draw: {
            algorithm: string;
            beacon: string | null;
            /** @default null */
            beacon_missed_at: string | null;
            /** @default null */
            beacon_round: number | null;
            /** @default null */
            beacon_source: components["schemas"]["BeaconOrigin"] | null;
            closed_at: string | null;
            commitment: string;
            drawn_at: string | null;
            entries: number | null;
            list_hash: string | null;
            /** @default null */
            listed_at: string | null;
            receipt_key: string;
            round: string;
            sale_id: string;
            seed: string | null;
            wants_beacon: boolean;
        };
        /** DrawEntries */
        DrawEntries: {
            drawn: boolean;
            entries: string[];
            next: number | null;
        };
        /** EarlyAccess */
        EarlyAccess: {
            groups: string[];
            minutes: number;
        };
        /**
         * Entry
         * @description A buyer's place in a line.
         */
        Entry: {
            ahead: number | null;
            buyer?: string;
            chance: number | null;
            entry_id: string;
            item_id?: string;
            joined_at: string;
            metadata?: Record<string, never>;
            of: number;
            /** @default null */
            order_id: string | null;
            place: number | null;
            quantity: number;
            /** @default null */
            reason: string | null;
            receipt: string;
            round: string;
            sale_id: string;
            state: string;
            units: number;
        };
        /** EntryRemoval */
        EntryRemoval: {
            reason: string;
        };
        /**
         * ErasedBuyer
         * @description How many of each name a pseudonym now. `lists`: audiences that they are no longer part of.
         */
        ErasedBuyer: {
            entries: number;
            events: number;
            letters: number;
            lists: number;
            orders: number;
        };
        /** Event */
        Event: {
            at: string;
            cursor: number;
            data: Record<string, never>;
            id: string;
            type: string;
        };
        /** Events */
        Events: {
            events: components["schemas"]["Event"][];
            next: number;
        };
        /**
         * ExportedOrder
         * @description An order of any buyer, as operators read it.
         */
        ExportedOrder: {
            buyer: string;
            /** @default null */
            closed_at: string | null;
            /** @default null */
            closed_by: string | null;
            codes?: string[];
            created_at: string;
            /**
             * @description The code of ISO 4217.
             * @example CNY
             */
            currency: string;
            item_external_id?: string | null;
            item_id?: string;
            item_title?: string;
            metadata?: Record<string, never>;
            order_id: string;
            /** @default null */
            paid_at: string | null;
            /** @default null */
            pay_before: string | null;
            payment_ids?: string[];
            /** @description In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD. */
            price_cents: number;
            quantity: number;
            /**
             * @description In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD.
             * @default 0
             */
            refunded_cents: number;
            /** @default null */
            replaced_by: string | null;
            round: string;
            sale_id: string;
            state: string;
        };
        /** FoundOrder */
        FoundOrder: {
            actions: components["schemas"]["OrderAction"][];
            buyer: string | null;
            events: components["schemas"]["OrderEvent"][];
            letters: components["schemas"]["DeadLetter"][];
            order: components["schemas"]["Order"] | null;
            /** @default null */
            ordinal: number | null;
            payments: components["schemas"]["FoundPayment"][];
            user: string | null;
            vouchers: components["schemas"]["Voucher"][];
        };
        /** FoundOrders */
        FoundOrders: {
            /** @default null */
            next: string | null;
            orders: components["schemas"]["FoundOrder"][];
        };
        /**
         * FoundPayment
         * @description Money that was taken. It pays for an order, came late and `waits` for a decision, or is refunded, as may also be
         *         what has paid for an order.
         */
        FoundPayment: {
            /** @description In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD. */
            amount_cents: number;
            at: string;
            /**
             * @description The code of ISO 4217.
             * @example CNY
             */
            currency: string;
            order_id: string;
            payment_id: string;
            pays: string | null;
            provider: string;
            refund: components["schemas"]["Refund"] | null;
            refunds: components["schemas"]["Refund"][];
            waits: boolean;
        };
        /** History */
        History: {
            currency: string;
            from: string;
            points: components["schemas"]["HistoryPoint"][];
            sale_id: string;
            step_s: number;
            to: string;
        };
        /**
         * HistoryPoint
         * @description How a round stood at the end of a step. Units and money are of all that there ever were by then.
         */
        HistoryPoint: {
            accepted_units: number | null;
            at: string;
            available: number | null;
            backlog: number;
            lag_ms: number;
            paid_units: number | null;
            persisted_units: number;
            refused: {
                [key: string]: number;
            };
            round: string;
            system_p99_ms: number | null;
            taken_cents: number | null;
            unpaid_units: number | null;
            waiting: number | null;
        };
        /** Item */
        Item: {
            external_id?: string | null;
            image: string | null;
            item_id: string;
            /** @description In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD. */
            price_cents: number;
            sold_out: boolean;
            title: string;
            units: number;
        };
        /** ItemCodes */
        ItemCodes: {
            free: number;
            item_id: string;
            needed: number;
            title: string;
        };
        /** ItemCustody */
        ItemCustody: {
            available: number;
            dead: number;
            item_id: string;
            kept: number;
            lapsed: number;
            next_return_at: string | null;
            orders: number;
            paid: number;
            queued: number;
            returning: number;
            sold: number;
            title: string;
            total: number;
            unpaid: number;
        };
        /** ItemPatch */
        ItemPatch: {
            /** @default null */
            add_units: number | null;
            external_id?: string | null;
            image?: string | null;
            item_id: string;
            /** @default null */
            title: string | null;
        };
        /** ItemSummary */
        ItemSummary: {
            item_id: string;
            lapsed: number;
            net_cents: number;
            orders: number;
            paid_units: number;
            sell_through: number;
            sold_units: number;
            title: string;
            units: number;
        };
        /**
         * LineKey
         * @description A JSON Web Key (RFC 8037).
         */
        LineKey: {
            crv: string;
            kid: string;
            kty: string;
            use: string;
            x: string;
        };
        /** LineKeys */
        LineKeys: {
            keys: components["schemas"]["LineKey"][];
        };
        /** LineOfOperator */
        LineOfOperator: {
            beacon: string | null;
            closed_at: string | null;
            drawn_at: string | null;
            entries: components["schemas"]["Entry"][];
            fetches_beacon: boolean;
            line: components["schemas"]["LineShown"];
            next: number | null;
            serve_per_s: number | null;
            wants_beacon: boolean;
        };
        /** LinePatch */
        LinePatch: {
            /** @default null */
            beacon: string | null;
            /** @default null */
            paused: boolean | null;
            serve_per_s?: number | null;
        };
        /**
         * LineShown
         * @description How far the line has come. The same for everybody, so pages ask for this and not for each entry.
         */
        LineShown: {
            drawn: boolean;
            /**
             * @description How buyers come to units. `press`: whoever presses first. `arrival`: by their places in a line; who joins before the beginning is shuffled, the others follow as they come. `draw`: who joins before the beginning takes part in one draw, the others queue behind.
             * @enum {string}
             */
            order: "press" | "arrival" | "draw";
            paused: boolean;
            places: number;
            served: number;
            served_up_to: number;
            units: number;
            units_left: number | null;
            unpaid: number;
            waiting: number;
        };
        /** Live */
        Live: {
            answers: components["schemas"]["Answers"];
            nodes: components["schemas"]["Node"][];
            sales: components["schemas"]["LiveSale"][];
            server_time: string;
        };
        /** LiveItem */
        LiveItem: {
            available: number;
            item_id: string;
        };
        /**
         * LiveSale
         * @description A sale that is on or about to be. Counts only grow; rates are their differences.
         */
        LiveSale: {
            accepted_units: number | null;
            available: number | null;
            backlog: number;
            items?: components["schemas"]["LiveItem"][];
            lag_ms: number;
            persisted_units: number;
            refused: {
                [key: string]: number;
            };
            round: string;
            sale_id: string;
        };
        /** Me */
        Me: {
            name: string;
            role: components["schemas"]["Role"];
        };
        /**
         * MissedEvents
         * @description Events that were pruned from the feed before they were sent.
         */
        MissedEvents: {
            after: number;
            at: string;
            until: number;
        };
        /**
         * Money
         * @description In minor units of the currency.
         */
        Money: {
            currency: string;
            net_cents: number;
            refunded_cents: number;
            refunding_cents: number;
            taken_cents: number;
        };
        /** NewBuyerTokenEnd */
        NewBuyerTokenEnd: {
            /** @default null */
            before: string | null;
            /** @description The `sub` of the buyer's tokens. */
            buyer: string;
            /** @description In a line; it stays on the record. */
            reason: string;
        };
        /** NewCancellation */
        NewCancellation: {
            reason: string;
        };
        /** NewEntry */
        NewEntry: {
            /** @default null */
            item_id: string | null;
            /** @default null */
            metadata: Record<string, never> | null;
            /** @default 1 */
            quantity: number;
        };
        /**
         * NewItem
         * @description A size or a colour: units and a price of its own, and one limit for all of them.
         */
        NewItem: {
            /** @default null */
            external_id: string | null;
            /** @default null */
            image: string | null;
            /** @description In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD. */
            price_cents?: number;
            title: string;
            units: number;
        };
        /** NewOperatorKey */
        NewOperatorKey: {
            /** @default null */
            expires_in_s: number | null;
            /** @description Whose it is; one may have several. */
            name: string;
            role: components["schemas"]["Role"];
        };
        /** NewOrder */
        NewOrder: {
            /** @default null */
            item_id: string | null;
            /** @default null */
            metadata: Record<string, never> | null;
            /** @default 1 */
            quantity: number;
        };
        /**
         * NewPass
         * @description Empty: asks for a challenge. Then what it asks for: `solution` of `work`, `response` and `ticket` of `check`.
         */
        NewPass: {
            /** @default null */
            response: string | null;
            /** @default null */
            solution: components["schemas"]["PassSolution"] | null;
            /** @default  */
            ticket: string;
        };
        /**
         * NewRefund
         * @description `return_unit`: the order's units go back on sale, with whichever refund says so first.
         */
        NewRefund: {
            /** @default null */
            amount_cents: number | null;
            reason: string;
            return_unit: boolean;
        };
        /** NewRepair */
        NewRepair: {
            /** @default false */
            apply: boolean;
        };
        /** NewSale */
        NewSale: {
            /** @default null */
            audience: components["schemas"]["Audience"] | null;
            /** @default false */
            beacon: boolean;
            /** Format: date-time */
            begins_at: string;
            /**
             * @default gate
             * @enum {string}
             */
            confirm: "gate" | "ledger";
            /** @default null */
            cool_down_s: number | null;
            /**
             * @description The code of ISO 4217.
             * @default CNY
             * @example CNY
             */
            currency: string;
            /** @default  */
            delivery: string;
            /**
             * @description Text. Empty lines part paragraphs; `## ` begins a heading and `- ` an item of a list; `**bold**`, `*italic*` and `[link](https://…)` are understood, HTML is not.
             * @default
             */
            description: string;
            /** Format: date-time */
            ends_at: string;
            /** @default null */
            external_id: string | null;
            /**
             * @description Addresses of pictures, the cover first: https, of a host that SECKILL_IMAGE_HOSTS names, or what POST /v1/admin/images has answered with.
             * @default []
             */
            images: string[];
            /** @default [] */
            items: components["schemas"]["NewItem"][];
            /** @default 1 */
            lanes: number;
            /**
             * @description The token's claim that counts as one person for the limit.
             * @default sub
             */
            limit_by: string;
            /** @default null */
            limit_group: string | null;
            /** @default 1 */
            limit_per_buyer: number;
            /** @default null */
            list_price_cents: number | null;
            /** @default null */
            metadata: Record<string, never> | null;
            /**
             * @description How buyers come to units. `press`: whoever presses first. `arrival`: by their places in a line; who joins before the beginning is shuffled, the others follow as they come. `draw`: who joins before the beginning takes part in one draw, the others queue behind.
             * @default press
             * @enum {string}
             */
            order: "press" | "arrival" | "draw";
            /**
             * @description `work`: the page solves a proof of work first; `check`: a captcha service is asked.
             * @default none
             * @enum {string}
             */
            pass: "none" | "work" | "check";
            /**
             * @description Numbers that whoever solves the proof of work has to try at most, on average half as many.
             * @default 400000
             */
            pass_work: number;
            /** @default null */
            pay_within_s: number | null;
            /** @description In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD. */
            price_cents?: number;
            /** @default true */
            published: boolean;
            /** @default null */
            repeat: string | null;
            /** @default null */
            return_url: string | null;
            /** @default null */
            serve_per_s: number | null;
            /** @default null */
            terms_url: string | null;
            /** @default UTC */
            timezone: string;
            title: string;
            units?: number;
            /** @default false */
            vouchers: boolean;
            /** @default false */
            waiting_list: boolean;
        };
        /** NewTokenEnd */
        NewTokenEnd: {
            /** @default null */
            before: string | null;
            /** @description In a line; it stays on the record. */
            reason: string;
        };
        /** NewWebhook */
        NewWebhook: {
            /** @default  */
            description: string;
            /** @default true */
            enabled: boolean;
            /** @default null */
            sale_id: string | null;
            /** @default null */
            types: string[] | null;
            /** @description https or http. */
            url: string;
        };
        /** NewWebhookSecret */
        NewWebhookSecret: {
            /** @default 24 */
            overlap_hours: number;
        };
        /** Node */
        Node: {
            claims: number;
            cpu_s: number;
            host: string;
            id: string;
            memory_bytes: number;
            pid: number;
            recorded: number;
            role: string;
            seen_at: string;
            started_at: string;
            state: string;
            version: string;
        };
        /**
         * OneBuyer
         * @description `buyer`: the `sub` of their tokens.
         */
        OneBuyer: {
            buyer: string;
        };
        /** OperatorKey */
        OperatorKey: {
            created_at: string;
            created_by: string;
            expires_at: string | null;
            id: string;
            key?: string;
            name: string;
            revoked_at: string | null;
            role: components["schemas"]["Role"];
            state: string;
        };
        /** OperatorKeys */
        OperatorKeys: {
            operators: components["schemas"]["OperatorKey"][];
        };
        /** Order */
        Order: {
            /** @default null */
            closed_at: string | null;
            /** @default null */
            closed_by: string | null;
            codes?: string[];
            created_at: string;
            /**
             * @description The code of ISO 4217.
             * @example CNY
             */
            currency: string;
            item_external_id?: string | null;
            item_id?: string;
            item_title?: string;
            metadata?: Record<string, never>;
            order_id: string;
            /** @default null */
            paid_at: string | null;
            /** @default null */
            pay_before: string | null;
            /** @description In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD. */
            price_cents: number;
            quantity: number;
            /**
             * @description In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD.
             * @default 0
             */
            refunded_cents: number;
            /** @default null */
            replaced_by: string | null;
            round: string;
            sale_id: string;
            state: string;
        };
        /** OrderAccepted */
        OrderAccepted: {
            item_id?: string;
            order_id: string;
            quantity: number;
            round: string;
            sale_id: string;
            state: string;
        };
        /**
         * OrderAction
         * @description What an operator did, and why.
         */
        OrderAction: {
            action: string;
            amount_cents: number | null;
            at: string;
            reason: string;
            return_unit: boolean;
        };
        /** OrderEvent */
        OrderEvent: {
            at: string;
            before: string | null;
            cause: string;
            state: string;
        };
        /**
         * OrderToPay
         * @description Left out if nothing is to be paid any more.
         */
        OrderToPay: {
            /** @default null */
            closed_at: string | null;
            /** @default null */
            closed_by: string | null;
            codes?: string[];
            created_at: string;
            /**
             * @description The code of ISO 4217.
             * @example CNY
             */
            currency: string;
            item_external_id?: string | null;
            item_id?: string;
            item_title?: string;
            metadata?: Record<string, never>;
            order_id: string;
            /** @default null */
            paid_at: string | null;
            /** @default null */
            pay_before: string | null;
            pay_qr?: string;
            pay_url?: string;
            /** @description In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD. */
            price_cents: number;
            quantity: number;
            /**
             * @description In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD.
             * @default 0
             */
            refunded_cents: number;
            /** @default null */
            replaced_by: string | null;
            round: string;
            sale_id: string;
            state: string;
        };
        /** Orders */
        Orders: {
            next: string | null;
            orders: components["schemas"]["Order"][];
        };
        /** Overview */
        Overview: {
            alarms: components["schemas"]["AlarmView"][];
            sales: components["schemas"]["SaleStanding"][];
            server_time: string;
        };
        /** OwnEntries */
        OwnEntries: {
            entries: components["schemas"]["Entry"][];
        };
        /** Pass */
        Pass: {
            expires_at: string;
            pass: string;
        };
        /**
         * PassChallenge
         * @description `work`: find the `number` up to `maxnumber` for which the hexadecimal SHA-256 of `salt` and that number, both as
         *         text, is `challenge`. `check`: let the captcha's widget with `site_key` give a response.
         */
        PassChallenge: {
            /** @default null */
            algorithm: string | null;
            /** @default null */
            challenge: string | null;
            /** @default null */
            expires_at: string | null;
            kind: string;
            /** @default null */
            maxnumber: number | null;
            /** @default null */
            salt: string | null;
            /** @default null */
            signature: string | null;
            /** @default null */
            site_key: string | null;
            /** @default null */
            ticket: string | null;
        };
        /** PassSolution */
        PassSolution: {
            challenge: string;
            number: number;
            salt: string;
            signature: string;
        };
        /**
         * PaymentNotice
         * @description What a callback says, unless the shop has its own provider with its own messages.
         */
        PaymentNotice: {
            /** @description In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD. */
            amount_cents: number;
            /**
             * @description The code of ISO 4217.
             * @example CNY
             */
            currency: string;
            order_id: string;
            payment_id: string;
        };
        /** Problem */
        Problem: {
            code: string;
            detail: string;
            status: number;
            title: string;
            type: string;
        };
        /** Record */
        Record: {
            entries: components["schemas"]["RecordEntry"][];
            /** @default null */
            next: string | null;
        };
        /** RecordEntry */
        RecordEntry: {
            after: Record<string, never> | null;
            at: string;
            before: Record<string, never> | null;
            id: string;
            request_id: string;
            sale_id: string | null;
            subject: string;
            what: string;
            who: string;
            why: string | null;
        };
        /** Refund */
        Refund: {
            /** @description In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD. */
            amount_cents: number;
            attempts: number;
            created_at: string;
            /**
             * @description The code of ISO 4217.
             * @example CNY
             */
            currency: string;
            done_at: string | null;
            /** @default null */
            explanation: string | null;
            id: string;
            order_id: string;
            payment_id: string;
            provider: string;
            reason: string;
            /** @default null */
            refused: string | null;
        };
        /** Refunds */
        Refunds: {
            refunds: components["schemas"]["Refund"][];
        };
        /** Repaired */
        Repaired: {
            audit: components["schemas"]["Audit"];
            done: string[];
            for_people: string[];
            to_do: string[];
        };
        /**
         * Repetition
         * @description The first window of a sale, and how it comes again.
         */
        Repetition: {
            /** Format: date-time */
            begins_at: string;
            /** Format: date-time */
            ends_at: string;
            repeat: string;
            /** @default UTC */
            timezone: string;
        };
        /**
         * Role
         * @description Each may do what those before it may.
         * @enum {unknown}
         */
        Role: "admin" | "operator" | "viewer";
        /** Sale */
        Sale: {
            audience?: components["schemas"]["Audience"] | null;
            beacon?: boolean;
            begins_at: string;
            /** @enum {string} */
            confirm: "gate" | "ledger";
            cool_down_s: number;
            /**
             * @description The code of ISO 4217.
             * @example CNY
             */
            currency: string;
            delivery?: string;
            description?: string;
            ends_at: string;
            external_id?: string | null;
            id: string;
            images: string[];
            items?: components["schemas"]["Item"][];
            lanes: number;
            left_percent: number | null;
            limit_by?: string;
            limit_group?: string | null;
            limit_per_buyer: number;
            lined: boolean;
            list_buyers?: number;
            list_price_cents: number | null;
            metadata?: Record<string, never> | null;
            next_rounds: string[];
            /**
             * @description How buyers come to units. `press`: whoever presses first. `arrival`: by their places in a line; who joins before the beginning is shuffled, the others follow as they come. `draw`: who joins before the beginning takes part in one draw, the others queue behind.
             * @enum {string}
             */
            order: "press" | "arrival" | "draw";
            /**
             * @description `work`: the page solves a proof of work first; `check`: a captcha service is asked.
             * @enum {string}
             */
            pass: "none" | "work" | "check";
            pass_work?: number;
            pay_within_s: number;
            /** @description In minor units of the currency, as in ISO 4217: 9900 is 99.00 CNY, 9900 JPY or 9.900 KWD. */
            price_cents: number;
            published?: boolean;
            repeat: string | null;
            return_url?: string | null;
            round: string;
            serve_per_s?: number | null;
            server_time: string;
            state: string;
            terms_url?: string | null;
            timezone: string;
            title: string;
            units: number;
            vouchers: boolean;
            waiting_list: boolean;
            waits_for_codes?: boolean;
        };
        /** SaleCopy */
        SaleCopy: {
            audience?: components["schemas"]["Audience"] | null;
            beacon?: boolean | null;
            begins_at?: string | null;
            confirm?: ("gate" | "ledger") | null;
            cool_down_s?: number | null;
            currency?: string | null;
            delivery?: string | null;
            description?: string | null;
            ends_at?: string | null;
            external_id?: string | null;
            images?: string[] | null;
            items?: components["schemas"]["NewItem"][] | null;
            lanes?: number | null;
            limit_by?: string | null;
            limit_group?: string | null;
            limit_per_buyer?: number | null;
            list_price_cents?: number | null;
            metadata?: Record<string, never> | null;
            order?: ("press" | "arrival" | "draw") | null;
            pass?: ("none" | "work" | "check") | null;
            pass_work?: number | null;
            pay_within_s?: number | null;
            price_cents?: number | null;
            published?: boolean | null;
            repeat?: string | null;
            return_url?: string | null;
            serve_per_s?: number | null;
            terms_url?: string | null;
            timezone?: string | null;
            title?: string | null;
            units?: number | null;
            vouchers?: boolean | null;
            waiting_list?: boolean | null;
        };
        /** SalePatch */
        SalePatch: {
            /** @default null */
            add_units: number | null;
            audience?: components["schemas"]["Audience"] | null;
            /** @default null */
            begins_at: string | null;
            /** @default null */
            cool_down_s: number | null;
            delivery?: string | null;
            description?: string | null;
            /** @default null */
            ends_at: string | null;
            external_id?: string | null;
            images?: string[] | null;
            /** @default null */
            items: components["schemas"]["ItemPatch"][] | null;
            /** @default null */
            limit_per_buyer: number | null;
            list_price_cents?: number | null;
            metadata?: Record<string, never> | null;
            /** @default null */
            pass: ("none" | "work" | "check") | null;
            /** @default null */
            pass_work: number | null;
            /** @default null */
            published: boolean | null;
            return_url?: string | null;
            terms_url?: string | null;
            /** @default null */
            title: string | null;
        };
        /**
         * SaleRound
         * @description What a round has of its own, under the names that the sale has them.
         */
        SaleRound: {
            begins_at: string;
            cool_down_s: number;
            ends_at: string;
            limit_per_buyer: number;
            round: string;
            state: string;
            units: number;
        };
        /** SaleRounds */
        SaleRounds: {
            rounds: components["schemas"]["SaleRound"][];
        };
        /** SaleStanding */
        SaleStanding: {
            alarms: number;
            available: number | null;
            currency: string;
            net_cents: number | null;
            paid_units: number | null;
            round: string;
            sale_id: string;
            sold_units: number;
            units: number;
        };
        /** Sales */
        Sales: {
            /** @default null */
            older: string | null;
            sales: components["schemas"]["Sale"][];
            server_time: string;
        };
        /** ServerLook */
        ServerLook: {
            address: string;
            advice: string[];
            answered_ms: number | null;
            mend: string[];
            part: string;
            says: string;
            state: string;
        };
        /** ServerTime */
        ServerTime: {
            server_time: string;
        };
        /** SettingValue */
        SettingValue: {
            default: string;
            unit: string;
            value: string;
            variable: string;
        };
        /**
         * Story
         * @description Nobody's name is in it. All but `refused` is read from the orders and stays as long as they do.
         */
        Story: {
            begins_at: string;
            curve: number[];
            draw: components["schemas"]["Draw"] | null;
            first_unit_at: string | null;
            gone_at: string | null;
            last_unit_at: string | null;
            may_return: number | null;
            orders: number;
            refused: {
                [key: string]: number;
            } | null;
            resold: number;
            returned: number;
            round: string;
            sale_id: string;
            seconds_to_sell_out: number | null;
            units: number;
            units_given: number;
        };
        /** Summary */
        Summary: {
            begins_at: string;
            conversion: components["schemas"]["Conversion"];
            first_order_at: string | null;
            items?: components["schemas"]["ItemSummary"][];
            lapse_rate: number;
            lapsed: number;
            money: components["schemas"]["Money"][];
            money_of_all_rounds: components["schemas"]["Money"][];
            paid_units: number;
            returned_units: number;
            round: string;
            sale_id: string;
            seconds_to_sell_out: number | null;
            sell_through: number;
            sold_out_at: string | null;
            sold_units: number;
            units: number;
        };
        /** System */
        System: {
            rehearsal: string;
            server_time: string;
            servers: components["schemas"]["ServerLook"][];
            settings: components["schemas"]["SettingValue"][];
            version: string;
        };
        /** Timeline */
        Timeline: {
            entries: components["schemas"]["TimelineEntry"][];
            sale_id: string;
        };
        /** TimelineEntry */
        TimelineEntry: {
            after: Record<string, never> | null;
            at: string;
            before: Record<string, never> | null;
            facts: Record<string, never>;
            kind: string;
            round: string | null;
            who: string | null;
            why: string | null;
        };
        /** TokensEnded */
        TokensEnded: {
            tokens_ended_before: string;
        };
        /** UploadedImage */
        UploadedImage: {
            height: number;
            url: string;
            width: number;
        };
        /** Voucher */
        Voucher: {
            buyer: string | null;
            code: string;
            given_at: string | null;
            id: string;
            order_id: string | null;
            redeemed_at: string | null;
            sale_id: string;
            shown_at: string | null;
            state: string;
            void_at: string | null;
        };
        /**
         * VoucherCounts
         * @description codes = free + given + redeemed + void.
         */
        VoucherCounts: {
            codes: number;
            free: number;
            given: number;
            items?: components["schemas"]["ItemCodes"][];
            missing: number;
            redeemed: number;
            void: number;
        };
        /** VouchersAdded */
        VouchersAdded: {
            added: number;
            codes: number;
            free: number;
            given: number;
            items?: components["schemas"]["ItemCodes"][];
            missing: number;
            redeemed: number;
            void: number;
        };
        /** Webhook */
        Webhook: {
            behind: number;
            created_at: string;
            delivered_at: string | null;
            description: string;
            disabled_by: string | null;
            enabled: boolean;
            failed: number;
            failing_since: string | null;
            failures: number;
            id: string;
            missed: components["schemas"]["MissedEvents"] | null;
            next_try_at: string | null;
            overlap_until: string | null;
            sale_id: string | null;
            secret?: string;
            types: string[] | null;
            url: string;
            waiting: number;
        };
        /** WebhookDeliveries */
        WebhookDeliveries: {
            deliveries: components["schemas"]["WebhookDelivery"][];
            next: string | null;
        };
        /** WebhookDelivery */
        WebhookDelivery: {
            created_at: string;
            cursor: number | null;
            event_id: string;
            id: string;
            next_try_at: string | null;
            state: string;
            status: number | null;
            took_ms: number | null;
            tried_at: string | null;
            tries: number;
            trouble: string | null;
            type: string;
        };
        /** WebhookPatch */
        WebhookPatch: {
            description?: string;
            enabled?: boolean;
            sale_id?: string | null;
            types?: string[] | null;
            /** @description https or http. */
            url?: string;
        };
        /** Webhooks */
        Webhooks: {
            webhooks: components["schemas"]["Webhook"][];
        };
        /** Window */
        Window: {
            begins_at: string;
            ends_at: string;
        };
        /** Windows */
        Windows: {
            windows: components["schemas"]["Window"][];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    healthz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Alive */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    show_image: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A picture that was uploaded, always the same under its address */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Figures for Prometheus */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    readyz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ready to sell */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_alarms: {
        parameters: {
            query?: {
                /** @description `true`: only those that last now */
                on?: string;
                /** @description Only about this sale */
                sale_id?: string;
                /** @description Only from this time on */
                since?: string;
                /** @description Only before this time */
                until?: string;
                /** @description How many, 1 to 500, 20 if left out */
                limit?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Alarms that were raised, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Alarms"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_audit: {
        parameters: {
            query?: {
                /** @description `true`: compare all orders one by one, also if that was done a moment ago */
                full?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Does everything add up? The invariants now, with the ids of what breaks one */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Audit"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_buyers: {
        parameters: {
            query?: {
                /** @description Instead: this one, blocked or not */
                buyer?: string;
                /** @description Buyers on a page, 1 to 100, 20 if left out */
                limit?: string;
                /** @description `next` of the page before */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Buyers who are blocked, by name */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BuyerStandings"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    block_buyer: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BuyerWish"];
            };
        };
        responses: {
            /** @description Let a buyer buy, pay and queue no more; takes them out of every line */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BuyerStanding"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    end_tokens_of_buyer: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewBuyerTokenEnd"];
            };
        };
        responses: {
            /** @description End a buyer's tokens that were issued before a moment */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BuyerStanding"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    erase_buyer: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OneBuyer"];
            };
        };
        responses: {
            /** @description Put a pseudonym in a buyer's place, everywhere and for good; 409 while something of theirs may move */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErasedBuyer"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    export_buyer: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OneBuyer"];
            };
        };
        responses: {
            /** @description Everything that is held about one buyer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BuyerFile"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    unblock_buyer: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BuyerWish"];
            };
        };
        responses: {
            /** @description Let a buyer buy again */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BuyerStanding"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_dead: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Dead letters, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetters"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_dead: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                letter_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One dead letter with its history */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetter"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    discard_dead: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                letter_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Put it away: nothing more is to be done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetter"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    replay_dead: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                letter_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Try once more to write it */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetter"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    remove_entry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                entry_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EntryRemoval"];
            };
        };
        responses: {
            /** @description Remove an entry from its line, for a reason that stays on record */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_events: {
        parameters: {
            query?: {
                /** @description `next` of the answer before; the oldest that is kept if left out */
                after?: string;
                /** @description Only these, separated by commas; `order.*` stands for all that begin with it */
                types?: string;
                /** @description Only of this sale */
                sale_id?: string;
                /** @description Events at most, 1 to 1000, 100 if left out */
                limit?: string;
                /** @description Seconds to wait, at most 30, until there is one */
                wait?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Every committed change of sales, rounds, orders and money, once each, in the order of the commits */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Events"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    upload_image: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "image/*": string;
            };
        };
        responses: {
            /** @description Upload a picture for a sale: JPEG, PNG or WebP, at most 10 MiB and 40 million pixels */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadedImage"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    live: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Figures of the sales that are on, and every process, as they are now */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Live"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_me: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whose key this is, and which role it has */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Me"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_operator_keys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All keys of operators, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperatorKeys"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    create_operator_key: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewOperatorKey"];
            };
        };
        responses: {
            /** @description Make a key for an operator; the answer has it, this once */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperatorKey"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    revoke_operator_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                key_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoke a key: within seconds it opens nothing any more, on every node */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OperatorKey"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    find_orders: {
        parameters: {
            query?: {
                /** @description Only of this sale, round after round */
                sale_id?: string;
                /** @description Only of this round */
                round?: string;
                /** @description Only of this item */
                item_id?: string;
                /** @description Only those that are in this state now */
                state?: string;
                /** @description Only of this buyer */
                buyer?: string;
                /** @description Only those that were accepted at this time or later */
                since?: string;
                /** @description Only those that were accepted before this time */
                until?: string;
                /** @description `true`: with their voucher codes, which count as shown to their buyers from then on */
                codes?: string;
                /** @description Orders on a page, 1 to 100, 20 if left out */
                limit?: string;
                /** @description `next` of the page before */
                after?: string;
                /** @description Instead of all these: one order */
                order_id?: string;
                /** @description Or a buyer's newest orders, also those that are still queued */
                user?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Orders with every event, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FoundOrders"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    export_csv: {
        parameters: {
            query?: {
                /** @description Only of this sale, round after round */
                sale_id?: string;
                /** @description Only of this round */
                round?: string;
                /** @description Only of this item */
                item_id?: string;
                /** @description Only those that are in this state now */
                state?: string;
                /** @description Only of this buyer */
                buyer?: string;
                /** @description Only those that were accepted at this time or later */
                since?: string;
                /** @description Only those that were accepted before this time */
                until?: string;
                /** @description `true`: with their voucher codes, which count as shown to their buyers from then on */
                codes?: string;
                /** @description Only one portion of 1 to 1000; what to give as `after` is in the header `Seckill-Next` */
                limit?: string;
                /** @description Only those that come after this order */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All orders that fit, newest first, streamed as CSV */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/csv": components["schemas"]["ExportedOrder"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    export_jsonl: {
        parameters: {
            query?: {
                /** @description Only of this sale, round after round */
                sale_id?: string;
                /** @description Only of this round */
                round?: string;
                /** @description Only of this item */
                item_id?: string;
                /** @description Only those that are in this state now */
                state?: string;
                /** @description Only of this buyer */
                buyer?: string;
                /** @description Only those that were accepted at this time or later */
                since?: string;
                /** @description Only those that were accepted before this time */
                until?: string;
                /** @description `true`: with their voucher codes, which count as shown to their buyers from then on */
                codes?: string;
                /** @description Only one portion of 1 to 1000; what to give as `after` is in the header `Seckill-Next` */
                limit?: string;
                /** @description Only those that come after this order */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All orders that fit, newest first, streamed as JSON, an order on each line */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/jsonl": components["schemas"]["ExportedOrder"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    cancel_any_order: {
        parameters: {
            query?: never;
            header?: {
                /** @description Repeat with the same key, and it is done once */
                "Idempotency-Key"?: string;
            };
            path: {
                order_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewCancellation"];
            };
        };
        responses: {
            /** @description Cancel an unpaid order; its units are on sale again within a second */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExportedOrder"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    refund_order: {
        parameters: {
            query?: never;
            header?: {
                /** @description Repeat with the same key, and it is done once */
                "Idempotency-Key"?: string;
            };
            path: {
                order_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewRefund"];
            };
        };
        responses: {
            /** @description Refund a paid order, in full or in part, with its units back on sale or not */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExportedOrder"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_overview: {
        parameters: {
            query?: {
                /** @description `older` of the list of sales: 100 that were over earlier */
                before?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How all sales stand that are on or to come, and the last 100 that are over; and the alarms that last */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Overview"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_record: {
        parameters: {
            query?: {
                /** @description Only what this operator has done */
                who?: string;
                /** @description Only this; `sale.*` stands for all that begin with it */
                what?: string;
                /** @description Only about this sale */
                sale_id?: string;
                /** @description Only from this time on */
                since?: string;
                /** @description Only before this time */
                until?: string;
                /** @description Entries on a page, 1 to 1000, 20 if left out */
                limit?: string;
                /** @description `next` of the page before */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Who has changed what, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Record"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_refunds: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Refunds: those still to be made, then the newest */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Refunds"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    finish_refund: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                refund_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Note that a refund was made by hand */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Refund"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    repair: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NewRepair"];
            };
        };
        responses: {
            /** @description What the audit finds and what would mend it; does it with `apply` */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Repaired"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    replace_audience: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "text/csv": string;
            };
        };
        responses: {
            /** @description Replace the list of buyers whom a sale is for, one on each line, as CSV or as JSON lines */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AudienceReplaced"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    duplicate_sale: {
        parameters: {
            query?: never;
            header?: {
                /** @description Repeat with the same key and body to get the same sale, never a second one */
                "Idempotency-Key"?: string;
            };
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SaleCopy"];
            };
        };
        responses: {
            /** @description It was made before with the same key and body: the sale as it is now */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sale"];
                };
            };
            /** @description Make a draft of a sale: its goods, rules and items, and not its orders, codes or list of buyers */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sale"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_history: {
        parameters: {
            query?: {
                /** @description Only from this time on; the start of the sale if left out */
                from?: string;
                /** @description Only before this time; now, or when the sale was over, if left out */
                to?: string;
                /** @description Seconds from one point to the next, 1 to 86400; as many as give a chart if left out */
                step?: string;
                /** @description Only of this round */
                round?: string;
            };
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How a sale stood, step by step: what its charts are drawn from */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["History"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    export_history: {
        parameters: {
            query?: {
                /** @description Only from this time on; the start of the sale if left out */
                from?: string;
                /** @description Only before this time; now, or when the sale was over, if left out */
                to?: string;
                /** @description Seconds from one point to the next, 1 to 86400; as many as give a chart if left out */
                step?: string;
                /** @description Only of this round */
                round?: string;
            };
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The same for a spreadsheet */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_line_to_operator: {
        parameters: {
            query?: {
                /** @description `next` of the answer before */
                after?: string;
                /** @description How many at most */
                limit?: string;
                /** @description Only those that are in this state now */
                state?: string;
                /** @description Only this buyer's, wherever it is */
                buyer?: string;
                /** @description Another round of the sale than the current one */
                round?: string;
            };
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The line of a sale, with who is in it, by place, or before the draw by entry */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LineOfOperator"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    change_line: {
        parameters: {
            query?: {
                /** @description Another round of the sale than the current one */
                round?: string;
            };
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["LinePatch"];
            };
        };
        responses: {
            /** @description Pause serving, change its pace, give the beacon of the draw */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LineOfOperator"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_summary: {
        parameters: {
            query?: {
                /** @description Another round of the sale than the current one */
                round?: string;
            };
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What came of a round: money, conversion, sell-through */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Summary"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_timeline: {
        parameters: {
            query?: {
                /** @description Only from this time on */
                from?: string;
                /** @description Only before this time */
                to?: string;
                /** @description How many, 1 to 500, 100 if left out */
                limit?: string;
            };
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What happened to a sale, newest first: starts, sell-outs, returns, changes and by whom, alarms */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Timeline"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    count_vouchers: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How many codes a sale has, and how many it lacks */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VoucherCounts"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    upload_vouchers: {
        parameters: {
            query?: {
                /** @description For this item alone; left out: for whatever the sale sells */
                item_id?: string;
            };
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "text/csv": string;
            };
        };
        responses: {
            /** @description Upload codes, one on each line: all of them or none */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VouchersAdded"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_system: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What everything runs on: the servers, asked now, and the settings, without their secrets */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["System"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    end_all_tokens: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewTokenEnd"];
            };
        };
        responses: {
            /** @description End all buyers' tokens that were issued before a moment */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokensEnded"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_voucher: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                code: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Who has a code, and what has become of it */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Voucher"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    redeem_voucher: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                code: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Redeem a code, once */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Voucher"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_webhooks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All webhooks, and how each is doing */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhooks"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    create_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewWebhook"];
            };
        };
        responses: {
            /** @description Send events to an address from now on; the answer has the secret, this once */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One webhook */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    delete_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Send nothing to it any more, and forget its deliveries */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    change_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["WebhookPatch"];
            };
        };
        responses: {
            /** @description Change where it goes and which events it gets; enable or disable it */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_deliveries: {
        parameters: {
            query?: {
                /** @description Only `waiting`, `delivered` or `failed` ones */
                state?: string;
                /** @description Deliveries on a page, 1 to 100, 20 if left out */
                limit?: string;
                /** @description `next` of the page before */
                after?: string;
            };
            header?: never;
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deliveries that wait or were given up, and the last 100 that were made, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDeliveries"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    redeliver: {
        parameters: {
            query?: {
                /** @description Seconds to wait, at most 30, until it was tried */
                wait?: string;
            };
            header?: never;
            path: {
                webhook_id: string;
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Send it again, now; one that waits behind another of the same order keeps its place */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDelivery"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    rotate_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NewWebhookSecret"];
            };
        };
        responses: {
            /** @description Give it a new secret, shown this once; both sign while they overlap */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    test_webhook: {
        parameters: {
            query?: {
                /** @description Seconds to wait, at most 30, until it was tried */
                wait?: string;
            };
            header?: never;
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Send a `webhook.test` to it, also if it is disabled */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDelivery"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_windows: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Repetition"];
            };
        };
        responses: {
            /** @description The next five windows of a sale that would repeat like this */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Windows"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_entry: {
        parameters: {
            query?: {
                /** @description Seconds to wait, at most 30, until its state or its place changes */
                wait?: string;
            };
            header?: never;
            path: {
                entry_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One entry of the buyer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    leave_line: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                entry_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Leave the line */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    entry_events: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                entry_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The entry now and at each change, as server-sent events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["Entry"];
                };
            };
            /** @description What was seen last is the end: there is nothing to come back for */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_keys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The keys that receipts of entries are signed with, as a JSON Web Key Set */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LineKeys"];
                };
            };
        };
    };
    list_orders: {
        parameters: {
            query?: {
                /** @description `next` of the page before */
                cursor?: string;
                /** @description Orders on a page, 1 to 100, 20 if left out */
                limit?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The buyer's orders, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Orders"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_order: {
        parameters: {
            query?: {
                /** @description Seconds to wait, at most 30, until the state is no longer the one seen */
                wait?: string;
                /** @description The state the buyer knows; `queued` if left out */
                seen?: string;
            };
            header?: never;
            path: {
                order_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One order of the buyer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Order"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    cancel_order: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                order_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Cancel; the unit is on sale again within a second */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Order"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    order_events: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `id` of the event that was seen last; it is not sent again */
                "Last-Event-ID"?: string;
            };
            path: {
                order_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One order of the buyer, now and at each change, as server-sent events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["Order"];
                };
            };
            /** @description The order is over, and the state that was seen last is its last */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    pay_order: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                order_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Pay: done at once in the sandbox; or `pay_url`, where the payment provider takes the money */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OrderToPay"];
                };
            };
            /** @description Still unpaid: the buyer has to go to `pay_url`, or to scan `pay_qr` where there is one */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OrderToPay"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    payment_callback: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PaymentNotice"];
            };
        };
        responses: {
            /** @description Money was taken for an order; send the same again until it is answered with 2xx or 4xx */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Order"];
                };
            };
            /** @description The order was over, and what its money pays for is being decided */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Order"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_sales: {
        parameters: {
            query?: {
                /** @description `older` of the answer before: 100 sales that were over earlier */
                before?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All sales that are on or to come, and the last 100 that are over */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sales"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    create_sale: {
        parameters: {
            query?: never;
            header?: {
                /** @description Repeat with the same key and body to get the same sale, never a second one */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "begins_at": "2026-11-20T10:00:00+08:00",
                 *       "currency": "CNY",
                 *       "ends_at": "2036-11-20T11:00:00+08:00",
                 *       "limit_per_buyer": 1,
                 *       "price_cents": 9900,
                 *       "title": "Phone",
                 *       "units": 100
                 *     }
                 */
                "application/json": components["schemas"]["NewSale"];
            };
        };
        responses: {
            /** @description It was announced before with the same key and body: the sale as it is now */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sale"];
                };
            };
            /** @description Announce a sale */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sale"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_sale: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One sale */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sale"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    change_sale: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "add_units": 10
                 *     }
                 */
                "application/json": components["schemas"]["SalePatch"];
            };
        };
        responses: {
            /** @description Add units, move the window, change title, limit or what is shown, publish or hide */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sale"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    close_sale: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description End the sale for good, and its repetition */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sale"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    custody: {
        parameters: {
            query?: {
                /** @description Another round of the sale than the current one */
                round?: string;
            };
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Where every unit is */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Custody"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_draw: {
        parameters: {
            query?: {
                /** @description Another round of the sale than the current one */
                round?: string;
            };
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The draw of a sale, with all that is needed to check it */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Draw"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_draw: {
        parameters: {
            query?: {
                /** @description `next` of the answer before */
                after?: string;
                /** @description How many at most */
                limit?: string;
                /** @description Another round of the sale than the current one */
                round?: string;
            };
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The entries of a draw in the order of their places */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DrawEntries"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_own: {
        parameters: {
            query?: {
                /** @description Another round of the sale than the one that can be joined now */
                round?: string;
            };
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The buyer's own entry in the line of a sale, for those who do not know its id */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OwnEntries"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    join_line: {
        parameters: {
            query?: never;
            header?: {
                /** @description In a sale that needs one: the buyer's pass for this round */
                "Seckill-Pass"?: string;
            };
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NewEntry"];
            };
        };
        responses: {
            /** @description The buyer is in the line already, or was: the entry as it is */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"];
                };
            };
            /** @description Join the line of a sale; once for each buyer and round */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entry"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_line: {
        parameters: {
            query?: {
                /** @description Another round of the sale than the current one */
                round?: string;
            };
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How far the line of a sale has come */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LineShown"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    create_order: {
        parameters: {
            query?: never;
            header?: {
                /** @description Repeat with the same key to get the same order, never a second one */
                "Idempotency-Key"?: string;
                /** @description In a sale that needs one: the buyer's pass for this round */
                "Seckill-Pass"?: string;
                /** @description `wait=S`: answer when the order is written, with 201; with 202 after S seconds, at most 30 */
                Prefer?: string;
            };
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NewOrder"];
            };
        };
        responses: {
            /** @description The order is written: `confirm` of the sale is `ledger`, or `Prefer: wait=S` */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Order"];
                };
            };
            /** @description Buy: queues an order, or says why not; 201 with the order where the answer waited for the ledger */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OrderAccepted"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthenticated` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `blocked`, `not_invited`, `pass_required`, `person_unknown` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unknown_sale` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `limit_reached`, `join_the_line`, `not_started`, `paused`, `sold_out` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `ended` */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid`, `key_reused` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rate_limited`, `cooling_down` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_ready`, `overloaded`, `unknown` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    ask_for_pass: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["NewPass"];
            };
        };
        responses: {
            /** @description A challenge: solve it, and ask again with the solution */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PassChallenge"];
                };
            };
            /** @description A challenge; with what it asks for, a pass, which claims of this sale then carry */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pass"];
                };
            };
            /** @description Refused */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    pause_sale: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Stop selling for now */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sale"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    resume_sale: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Sell on */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sale"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    list_rounds: {
        parameters: {
            query?: {
                /** @description Only those that were made before this round */
                before?: string;
                /** @description Only this round */
                round?: string;
            };
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rounds of a sale, the newest first, at most 50 */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SaleRounds"];
                };
            };
            /** @description Refused */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    show_story: {
        parameters: {
            query?: {
                /** @description Another round of the sale than the current one */
                round?: string;
            };
            header?: never;
            path: {
                sale_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How a round went, when it is sold out or over */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Story"];
                };
            };
            /** @description Refused */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    server_time: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The time, by the clock that opens and closes sales */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServerTime"];
                };
            };
        };
    };
    version: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Version */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
}
