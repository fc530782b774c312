"""What the shop says, in English and in Chinese. The English text is the name of both; {braces} are filled in."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

LANGUAGES = {"en": "English", "zh": "中文"}
CHINESE = {
    "Tea shop": "茶店",
    "What we have": "店里有什么",
    "Flash sale": "限时秒杀",
    "{count} in stock": "库存 {count} 件",
    "Sold out": "已售罄",
    "My orders": "我的订单",
    "Staff": "店员",
    "Sign in": "登录",
    "Sign out {name}": "退出 {name}",
    "Name": "用户名",
    "Password": "密码",
    "I am new here": "我是新用户",
    "Name and password do not fit.": "用户名和密码不符。",
    "Somebody else has that name.": "这个名字已有人使用。",
    "Sign in first.": "请先登录。",
    "This is for the people of the shop.": "这里只有店员可以进入。",
    "No": "没有成功",
    "Not Found": "没有这个页面。",
    "Back to the shop": "返回茶店",
    "That did not work just now. Go back and press again.": "刚才没有成功。请返回再点一次。",
    "There is no such order, or it is somebody else's.": "没有这个订单，或它属于别人。",
    "We have no such thing.": "店里没有这件商品。",
    "Colour": "颜色",
    "Choose one of its colours.": "请选择一种颜色。",
    "Buy at the usual price": "按原价购买",
    "{count} on the shelf": "货架上有 {count} 件",
    "The last one has just been sold.": "最后一件刚刚卖出。",
    "None yet.": "还没有。",
    "{amount} back": "已退 {amount}",
    "payment on its way": "付款处理中",
    "Pay": "付款",
    "Pay {amount}": "付款 {amount}",
    "Order {id}": "订单 {id}",
    "before {time} UTC": "请在 {time}（UTC）之前付款",
    "Card": "银行卡",
    "The shop is an example: any card will do, and no money moves.": "这是示例商店：任何卡号都行，不会真的扣款。",
    "queued": "确认中",
    "unpaid": "待付款",
    "paid": "已付款",
    "cancelled": "已取消",
    "expired": "超时未付",
    "failed": "下单失败",
    "refunded": "已退款",
    "Warehouse": "仓库",
    "product": "商品",
    "in stock": "库存",
    "free": "其中可用",
    "Announce a flash sale": "发布秒杀",
    "Product": "商品",
    "Units": "件数",
    "Price in cents": "价格（分）",
    "Starts in (minutes)": "距开始（分钟）",
    "Lasts (minutes)": "持续（分钟）",
    "Announce": "发布",
    "There are not so many free units of it.": "可用的库存没有这么多。",
    "Flash sales": "秒杀",
    "sale": "秒杀",
    "units": "件数",
    "not sold": "未售出",
    "ends (UTC)": "结束（UTC）",
    "not announced yet": "尚未发布",
    "Orders": "订单",
    "order": "订单",
    "buyer": "买家",
    "price": "金额",
    "state": "状态",
    "refund": "退款",
    "Reason": "原因",
    "back on sale": "重新上架",
    "Refund": "退款",
    "Letters": "信件",
    # The goods
    "Iron teapot": "铸铁茶壶",
    "Cast in one piece, holds 0.8 l and keeps tea warm for an hour. Enamelled when you order it.": (
        "一体铸造，容量 0.8 升，可保温一小时。下单后上釉。"
    ),
    "black": "黑色",
    "jade": "玉色",
    "rust": "锈红",
    "Two cups": "对杯",
    "Thrown by hand, no two alike. For tea that wants to be looked at.": "手工拉坯，没有两只一样。给值得细看的茶。",
    "First flush sencha": "头采煎茶",
    "100 g from the first picking in May. Brew it at 70 °C.": "五月头采，100 克。用 70 °C 的水冲泡。",
    # Letters: nobody knows here which language a buyer reads, so they have both.
    "Thank you! Your order {order_id} is paid, and on its way.": "谢谢！你的订单 {order_id} 已付款，正在寄出。",
    "{amount} of your order {order_id} are on their way back to you.": "订单 {order_id} 的 {amount} 正在退还给你。",
}

router = APIRouter()


def said(language: str, text: str, **facts: object) -> str:
    found = CHINESE.get(text, text) if language == "zh" else text
    return found.format(**facts) if facts else found  # a sentence of somebody else's may have braces in it


def in_both(text: str, **facts: object) -> str:
    return " / ".join(said(language, text, **facts) for language in LANGUAGES)


def language_of(request: Request) -> str:
    """The visitor's choice, or else the first of the browser's languages that the shop has."""
    chosen = request.session.get("language")
    wanted = [chosen] if chosen else _accepted(request.headers.get("accept-language", ""))
    return next((language for language in wanted if language in LANGUAGES), "en")


def _accepted(header: str) -> list[str]:
    """`zh-CN,zh;q=0.9,en;q=0.8`: the languages without their countries, the best first."""
    weighed = []
    for part in header.split(","):
        name, _, weight = part.partition(";q=")
        try:
            weighed.append((-float(weight or 1), name.strip().lower().split("-")[0]))
        except ValueError:  # not as the standard has it
            continue
    return [name for weight, name in sorted(weighed, key=lambda each: each[0]) if weight]


@router.post("/language")
async def choose(request: Request, language: Annotated[str, Form()], back: Annotated[str, Form()] = "/") -> Response:
    if language in LANGUAGES:
        request.session["language"] = language
    # A path of ours: nobody is sent elsewhere by a form that somebody else has made.
    return RedirectResponse(back if back.startswith("/") and not back.startswith(("//", "/\\")) else "/", 303)
