"""Money is counted in the smallest unit of its currency: cents, or what ISO 4217 has in their place. The API's names
say `cents` whatever the currency is."""

from decimal import Decimal

# ISO 4217 as of 1 January 2026, by the number of decimals, without codes in which nothing is priced: metals, bonds,
# tests. `currencies.js` has the same list.
_BY_DECIMALS = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    2: """
        AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY
        COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS
        INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR
        MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP
        STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG
    """,
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
# The greatest total price of all units of a round. Above it, programs that read numbers as browsers do lose cents, and
# SQLite could not add up the money of a thousand such rounds.
WORTH_CENTS_MAX = 2**53 - 1
DECIMALS = {code: decimals for decimals, codes in _BY_DECIMALS.items() for code in codes.split()}
# For a sale from before unknown currencies were refused, or in a currency that has been abolished since.
_OF_UNKNOWN = 2


def shown(amount: int, currency: str) -> str:
    """Shows the code and never a sign, since several currencies share one."""
    decimals = DECIMALS.get(currency, _OF_UNKNOWN)
    return f"{Decimal(amount).scaleb(-decimals):,.{decimals}f} {currency}"
