// Texts that only the console needs, beside those in ../strings.js.

import { ACCESS_STRINGS } from "./access_strings.js";

export const STRINGS = {
  ...ACCESS_STRINGS,
  all_states: ["All states", "全部状态"],
  filter_sale: ["Sale", "秒杀"],
  filter_state: ["State", "状态"],
  filter_buyer: ["Buyer, exactly", "买家（完全一致）"],
  filter_since: ["Accepted from (your time zone)", "下单时间从（本地时区）"],
  filter_until: ["Before", "早于"],
  filter_show: ["Show", "查询"],
  no_order_fits: ["No order that has been written fits this.", "没有符合条件的已写入订单。"],
  more_orders: ["Show more", "显示更多"],
  all_orders_of_sale: ["All orders", "全部订单"],
  price_paid: ["Price", "金额"],
  export_why: ["All that fit, not only those above. Voucher codes are left out.", "导出全部符合条件的订单，不限于上面显示的；不含券码。"],
  export_csv: ["Download as CSV", "下载 CSV"],
  export_jsonl: ["Download as JSON lines", "下载 JSONL"],
  export_running: ["The file is on its way …", "正在下载…"],
  export_done: ["The file is there.", "下载完成。"],

  duplicate: ["Duplicate", "复制"],
  duplicate_why: ["Everything is as in “{title}” but for the window and your own id. Lists of buyers and voucher codes belong to one sale: upload them anew.", "除时间与自有编号外，内容与“{title}”相同。买家名单和券码只属于一场秒杀，需要重新上传。"],
};
