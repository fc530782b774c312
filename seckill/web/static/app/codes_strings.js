// Texts of voucher codes: loaded with what shows them (codes_parts.js).

export const STRINGS = {
  code_title: ["Your code", "你的券码"],
  codes_title: ["Your codes", "你的券码"],
  codes_gone: ["This order has no codes any more.", "这笔订单的券码已失效。"],
  codes_secret: ["Whoever has a code can use it: show it only where you redeem it.", "券码谁持有谁就能用，只在使用时出示。"],
  copy: ["Copy", "复制"],
  copied: ["Copied", "已复制"],
  qr: ["QR code", "二维码"],
  qr_of: ["QR code of {code}", "{code} 的二维码"],
};
