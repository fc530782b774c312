// Texts of sales that are for some, or need a pass: loaded with the rest of what only those need (door_parts.js).

export const STRINGS = {
  comma: [", ", "、"],
  for_groups: ["Only for: {groups}", "仅限：{groups}"],
  the_invited: ["people on the shop's list", "商家名单内的买家"],
  early_groups: ["{groups}: from {time}", "{groups}：{time} 起"],
  pass_preparing: ["Your pass is being prepared. You need not do anything.", "正在准备你的通行证，无需操作。"],
  pass_ready: ["Your pass is ready.", "通行证已就绪。"],
  pass_refused: ["The shop gives you no pass for this sale, so you cannot buy here.", "商家没有为你发放通行证，无法购买。"],

  refused_blocked_title: ["You cannot buy here", "暂时无法购买"],
  refused_blocked: ["The shop has stopped purchases of this account. Nothing was bought; please ask the shop.", "商家已停止此账号的购买，没有下单。请联系商家。"],
  refused_not_invited_title: ["Not for you this time", "这场暂不对你开放"],
  refused_not_invited: ["This sale is for others: members of a group, or people on a list of the shop. Nothing was bought.", "这场活动只对部分会员或名单内的买家开放，没有下单。"],
  refused_person_unknown_title: ["Not with this sign-in", "当前登录无法购买"],
  refused_person_unknown: ["The shop counts by more than your name here, and your sign-in does not say by what. Nothing was bought; please ask the shop.", "这场活动不只按账号计算限购，而你的登录信息里缺少所需内容，没有下单。请联系商家。"],
  refused_pass_denied_title: ["No pass", "没有通行证"],
  refused_pass_denied: ["The shop gives you no pass for this sale. Nothing was bought.", "商家没有为你发放通行证，没有下单。"],
  refused_pass_required_title: ["No pass", "没有通行证"],
  refused_pass_required: ["This sale needs a pass, and none could be had. Nothing was bought; reload the page and press again.", "这场活动需要通行证，暂时没能取得，没有下单。请刷新页面后再试。"],
};
