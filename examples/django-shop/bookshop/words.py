"""What the shop says, in English and in Chinese. The English text is the name of both; {braces} are filled in.

Django has chosen the language (`LocaleMiddleware`), and says its own sentences in it. Ours are a table and no catalogue
of GNU gettext, which would have to be compiled with a tool that not every machine has.
"""

from django.utils.functional import lazy
from django.utils.translation import get_language

CHINESE = {
    "Bookshop": "书店",
    "My orders": "我的订单",
    "Staff": "店员",
    "Sign in": "登录",
    "Sign out {user}": "退出 {user}",
    "New on the shelves": "新书上架",
    "flash sale": "限时秒杀",
    "{count} in stock": "库存 {count} 本",
    "sold out": "已售罄",
    "{count} on the shelf": "货架上有 {count} 本",
    "Buy for {price}": "{price} 购买",
    "Flash sale: {price}": "限时秒杀：{price}",
    "{units} copies, {limit} for each reader.": "共 {units} 本，每位读者限 {limit} 本。",
    "Each with a code for the audio book.": "每本附有声书兑换码。",
    "Begins in": "距开始",
    "Ends in": "距结束",
    "a while": "稍候",
    "Get it now": "立即抢购",
    "Sign in to get it": "登录后抢购",
    "Sold out. Copies that are not paid for come back.": "已售罄。未付款的书会重新放出。",
    "Paused for a moment.": "暂停中，请稍候。",
    "Over.": "已结束。",
    "No": "没有成功",
    "Back to the shop": "返回书店",
    "The last one has just been sold.": "最后一本刚刚卖出。",
    "One moment": "请稍候",
    "No answer came in time. Asking again is safe: you get one, not two.": (
        "没有及时得到答复。可以放心重试：只会得到一本，不会变成两本。"
    ),
    "Ask again": "重试",
    "None yet.": "还没有。",
    "{amount} back": "已退 {amount}",
    "Order {id}": "订单 {id}",
    "A copy is yours; the order is being written.": "已为你锁定一本，正在生成订单。",
    "Look again": "刷新",
    "Pay in time, or the copy goes to somebody else:": "请及时付款，否则这本书会让给别人：",
    "ten minutes": "十分钟",
    "Scan this to pay": "扫码付款",
    "Pay {price}": "付款 {price}",
    "I do not want it": "我不要了",
    "The shop is an example: no money moves.": "这是示例商店，不会真的扣款。",
    "Your code for the audio book:": "你的有声书兑换码：",
    "{amount} of it are refunded.": "其中 {amount} 已退款。",
    "queued": "确认中",
    "unpaid": "待付款",
    "paid": "已付款",
    "cancelled": "已取消",
    "expired": "超时未付",
    "failed": "下单失败",
    "refunded": "已退款",
    # What seckill refuses
    "Sold out: you were quick, others were quicker. Units that are not paid for come back.": (
        "已售罄：你很快，别人更快。未付款的会重新放出。"
    ),
    "You have had yours: one for each of us.": "你已经买过了：每人一本。",
    "Not yet: the sale has not begun.": "还没有开始。",
    "The sale is over.": "秒杀已结束。",
    "There is no such order, or it is somebody else's.": "没有这个订单，或它属于别人。",
    # For the people of the shop
    "{count} are free.": "可用 {count} 本。",
    "{codes} codes for {units} copies.": "{units} 本书只有 {codes} 个兑换码。",
    "Refund; the book goes back on sale": "退款，书重新上架",
    "Refund; the book does not come back": "退款，书不收回",
    # The books
    "The Grey Sea": "灰色的海",
    "A lighthouse keeper counts ships, and one night there is one too many.": "守塔人数着船只，有一夜多出了一艘。",
    "Maps of Nowhere": "乌有之地图集",
    "Forty invented countries, drawn by hand, with their railways.": "四十个虚构的国家，手绘而成，连铁路也有。",
    "Bread in Ten Steps": "十步做面包",
    "Flour, water, salt, time. The tenth step is eating it.": "面粉、水、盐、时间。第十步是吃掉它。",
    # Letters
    "Thank you! Your order {order_id} is paid, and on its way.": "谢谢！你的订单 {order_id} 已付款，正在寄出。",
    "{amount} of your order {order_id} are on their way back to you.": "订单 {order_id} 的 {amount} 正在退还给你。",
}


def said(text: str, **facts: object) -> str:
    return _filled(CHINESE.get(text, text) if (get_language() or "").startswith("zh") else text, facts)


said_later = lazy(said, str)  # for what is written once and shown to many


def in_both(text: str, **facts: object) -> str:
    return " / ".join(_filled(each, facts) for each in (text, CHINESE[text]))


def _filled(text: str, facts: dict[str, object]) -> str:
    return text.format(**facts) if facts else text  # a sentence of somebody else's may have braces in it
